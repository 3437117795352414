package relock.interop;

import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.redisson.api.RCountDownLatch;
import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;

/** What can be asked of Redisson's locks. Times are milliseconds, -1 stands for none. */
final class Operations {
    private final Clients clients;
    private final RedissonClient redisson;

    Operations(Clients clients, RedissonClient redisson) {
        this.clients = clients;
        this.redisson = redisson;
    }

    String run(String kind, String name, String operation, String[] args) throws Exception {
        if (operation.equals("stress")) {
            return new Stress(redisson, this, kind, name, args).run();
        }
        if (operation.equals("bench")) {
            return new Bench(clients, kind, name, args).run();
        }
        if (operation.equals("clients")) { // how many: more are opened or closed
            clients.open(count(args[0]));
            return "";
        }
        if (operation.equals("owner")) { // what this thread is called in Redis
            return redisson.getId() + ":" + Thread.currentThread().getId();
        }
        return switch (kind) {
            case "semaphore" -> semaphore(redisson.getSemaphore(name), operation, args);
            case "permits" -> permits(redisson.getPermitExpirableSemaphore(name), operation, args);
            case "latch" -> latch(redisson.getCountDownLatch(name), operation, args);
            default -> lock(lock(kind, name), operation, args);
        };
    }

    RLock lock(String kind, String name) throws ReflectiveOperationException {
        return switch (kind) {
            case "lock" -> redisson.getLock(name);
            case "fenced" -> redisson.getFencedLock(name);
            case "fair" -> redisson.getFairLock(name);
            case "spin" -> redisson.getSpinLock(name);
            case "nonreentrant" -> // older versions do not have it
                    (RLock) RedissonClient.class.getMethod("getNonReentrantLock", String.class).invoke(redisson, name);
            case "multi" -> redisson.getMultiLock( // of plain locks, whose names have commas between them
                    Arrays.stream(name.split(",")).map(redisson::getLock).toArray(RLock[]::new));
            case "read" -> redisson.getReadWriteLock(name).readLock();
            case "write" -> redisson.getReadWriteLock(name).writeLock();
            default -> throw new IllegalArgumentException("no kind " + kind);
        };
    }

    private static String lock(RLock lock, String operation, String[] args) throws Exception {
        switch (operation) {
            case "lock" -> { // [lease]
                if (args.length == 0) {
                    lock.lock();
                } else {
                    lock.lock(number(args[0]), TimeUnit.MILLISECONDS);
                }
                return "";
            }
            case "try" -> { // [wait, lease]
                return "" + (args.length == 0 ? lock.tryLock()
                        : lock.tryLock(number(args[0]), number(args[1]), TimeUnit.MILLISECONDS));
            }
            case "unlock" -> {
                lock.unlock();
                return "";
            }
            case "token" -> {
                return "" + ((RFencedLock) lock).lockAndGetToken();
            }
            case "lasttoken" -> {
                return "" + ((RFencedLock) lock).getToken();
            }
            case "force" -> {
                return "" + lock.forceUnlock();
            }
            case "locked" -> {
                return "" + lock.isLocked();
            }
            case "mine" -> {
                return "" + lock.isHeldByCurrentThread();
            }
            case "holds" -> {
                return "" + lock.getHoldCount();
            }
            case "ttl" -> {
                return "" + lock.remainTimeToLive();
            }
            default -> throw new IllegalArgumentException("no operation " + operation);
        }
    }

    private static String semaphore(RSemaphore semaphore, String operation, String[] args) throws Exception {
        switch (operation) {
            case "set" -> {
                return "" + semaphore.trySetPermits(count(args[0]));
            }
            case "acquire" -> {
                semaphore.acquire(count(args[0]));
                return "";
            }
            case "try" -> { // n [wait]
                return "" + (args.length == 1 ? semaphore.tryAcquire(count(args[0]))
                        : semaphore.tryAcquire(count(args[0]), number(args[1]), TimeUnit.MILLISECONDS));
            }
            case "release" -> {
                semaphore.release(count(args[0]));
                return "";
            }
            case "add" -> {
                semaphore.addPermits(count(args[0]));
                return "";
            }
            case "drain" -> {
                return "" + semaphore.drainPermits();
            }
            case "available" -> {
                return "" + semaphore.availablePermits();
            }
            default -> throw new IllegalArgumentException("no operation " + operation);
        }
    }

    private static String permits(RPermitExpirableSemaphore permits, String operation, String[] args) throws Exception {
        switch (operation) {
            case "set" -> {
                return "" + permits.trySetPermits(count(args[0]));
            }
            case "limit" -> {
                permits.setPermits(count(args[0]));
                return "";
            }
            case "acquire" -> { // n, lease
                return String.join(",", permits.acquire(count(args[0]), number(args[1]), TimeUnit.MILLISECONDS));
            }
            case "try" -> { // n, wait, lease
                return String.join(",", permits.tryAcquire(count(args[0]), number(args[1]), number(args[2]), TimeUnit.MILLISECONDS));
            }
            case "release" -> { // ids: one in one way, several in another
                List<String> ids = Arrays.asList(args[0].split(","));
                return "" + (ids.size() == 1 ? permits.tryRelease(ids.get(0)) : permits.tryRelease(ids) == ids.size());
            }
            case "lease" -> { // id, lease
                return "" + permits.updateLeaseTime(args[0], number(args[1]), TimeUnit.MILLISECONDS);
            }
            case "left" -> { // id: the ms that are left of its lease
                return "" + permits.getLeaseTime(args[0]);
            }
            case "available" -> {
                return "" + permits.availablePermits();
            }
            case "acquired" -> {
                return "" + permits.acquiredPermits();
            }
            case "total" -> {
                return "" + permits.getPermits();
            }
            default -> throw new IllegalArgumentException("no operation " + operation);
        }
    }

    private static String latch(RCountDownLatch latch, String operation, String[] args) throws Exception {
        switch (operation) {
            case "set" -> {
                return "" + latch.trySetCount(number(args[0]));
            }
            case "down" -> {
                latch.countDown();
                return "";
            }
            case "await" -> { // [wait]
                if (args.length == 0) {
                    latch.await();
                    return "true";
                }
                return "" + latch.await(number(args[0]), TimeUnit.MILLISECONDS);
            }
            case "count" -> {
                return "" + latch.getCount();
            }
            default -> throw new IllegalArgumentException("no operation " + operation);
        }
    }

    private static long number(String text) {
        return Long.parseLong(text);
    }

    private static int count(String text) {
        return Integer.parseInt(text);
    }
}
