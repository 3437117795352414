package relock.interop;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.redisson.api.RAtomicLong;
import org.redisson.api.RBucket;
import org.redisson.api.RBuckets;
import org.redisson.api.RLock;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;

/**
 * Many threads at one lock, together with those of other processes, which do just the same:
 * see stress_test.go, whose words for the keys and the report are used here.
 */
final class Stress {
    private static final long LEASE = 60_000; // of permits, which nobody renews

    private final RedissonClient redisson;
    private final Operations operations;
    private final String kind;
    private final String name;
    private final int threads;
    private final long total;
    private final int limit;
    private final String countKey;
    private final String flagKey;
    private final RAtomicLong tickets;
    private final RAtomicLong inside;
    private final StringBuilder report = new StringBuilder();

    /** Arguments: threads, acquisitions in all, limit of a semaphore. */
    Stress(RedissonClient redisson, Operations operations, String kind, String name, String[] args) {
        this.redisson = redisson;
        this.operations = operations;
        this.kind = kind;
        this.name = name;
        this.threads = Integer.parseInt(args[0]);
        this.total = Long.parseLong(args[1]);
        this.limit = Integer.parseInt(args[2]);
        this.countKey = name + ":count";
        this.flagKey = name + ":flag";
        this.tickets = redisson.getAtomicLong(name + ":tickets");
        this.inside = redisson.getAtomicLong(name + ":inside");
    }

    /** One critical section: what it is for, and what it weighs there. */
    private interface Section {
        void run(String me) throws Exception;
    }

    String run() throws Exception {
        List<Thread> all = new ArrayList<>();
        List<Throwable> failures = new ArrayList<>();
        for (int i = 0; i < threads; i++) {
            String me = "j" + i;
            Thread thread = new Thread(() -> {
                try {
                    work(me);
                } catch (Throwable e) {
                    synchronized (failures) {
                        failures.add(e);
                    }
                }
            });
            all.add(thread);
            thread.start();
        }
        for (Thread thread : all) {
            thread.join();
        }
        if (!failures.isEmpty()) {
            throw new IllegalStateException(failures.size() + " threads failed, one with " + failures.get(0));
        }
        return report.toString();
    }

    private void work(String me) throws Exception {
        long ticket = tickets.incrementAndGet();
        for (; ticket <= total; ticket = tickets.incrementAndGet()) {
            switch (kind) {
                case "lock" -> locked(me, "x", operations.lock(kind, name), this::alone);
                case "rw" -> {
                    if (ticket % 4 == 0) {
                        locked(me, "x", operations.lock("write", name), this::alone);
                    } else {
                        locked(me, "r", operations.lock("read", name), this::shared);
                    }
                }
                case "semaphore" -> semaphore(me, 1 + (int) (ticket % 2));
                case "permits" -> permits(me, 1 + (int) (ticket % 2));
                default -> throw new IllegalArgumentException("no stress of " + kind);
            }
        }
    }

    private void locked(String me, String mode, RLock lock, Section section) throws Exception {
        long asked = Peer.now();
        lock.lock();
        long entered = Peer.now();
        long left;
        try {
            section.run(me);
        } finally { // or who waits behind a failure would wait for ever
            left = Peer.now();
            lock.unlock();
        }
        note(me, mode, asked, entered, left);
    }

    private void semaphore(String me, int n) throws Exception {
        RSemaphore semaphore = redisson.getSemaphore(name);
        long asked = Peer.now();
        semaphore.acquire(n);
        long entered = Peer.now();
        long left;
        try {
            atMost(n);
        } finally {
            left = Peer.now();
            semaphore.release(n);
        }
        note(me, "s", asked, entered, left);
    }

    private void permits(String me, int n) throws Exception {
        RPermitExpirableSemaphore semaphore = redisson.getPermitExpirableSemaphore(name);
        long asked = Peer.now();
        List<String> ids = semaphore.acquire(n, LEASE, TimeUnit.MILLISECONDS);
        long entered = Peer.now();
        long left;
        try {
            atMost(n);
        } finally {
            left = Peer.now();
            semaphore.release(ids);
        }
        note(me, "s", asked, entered, left);
    }

    /** Counts in two steps, which goes wrong unless nobody else is inside. */
    private void alone(String me) {
        RBuckets buckets = redisson.getBuckets(StringCodec.INSTANCE);
        RBucket<String> flag = redisson.getBucket(flagKey, StringCodec.INSTANCE);
        Map<String, String> before = buckets.get(countKey, flagKey);
        if (!before.get(flagKey).isEmpty() || inside.get() != 0) {
            throw new IllegalStateException("violation: " + me + " is inside with " + before.get(flagKey));
        }
        Map<String, String> after = new LinkedHashMap<>();
        after.put(flagKey, me);
        after.put(countKey, "" + (Long.parseLong(before.get(countKey)) + 1));
        buckets.set(after);
        String now = flag.getAndSet("");
        if (!now.equals(me)) {
            throw new IllegalStateException("violation: " + now + " is inside with " + me);
        }
    }

    /** Looks twice: as long as a reader is inside nobody counts. */
    private void shared(String me) {
        RBuckets buckets = redisson.getBuckets(StringCodec.INSTANCE);
        inside.incrementAndGet();
        Map<String, String> before = buckets.get(countKey, flagKey);
        Map<String, String> after = buckets.get(countKey, flagKey);
        inside.decrementAndGet();
        if (!before.get(flagKey).isEmpty() || !before.equals(after)) {
            throw new IllegalStateException("violation: the reader " + me + " is inside with " + before + ", " + after);
        }
    }

    private void atMost(int n) {
        long now = inside.addAndGet(n);
        inside.addAndGet(-n);
        if (now > limit) {
            throw new IllegalStateException("violation: " + now + " are inside, more than " + limit);
        }
    }

    private void note(String me, String mode, long asked, long entered, long left) {
        synchronized (report) {
            report.append(me).append(' ').append(mode).append(' ').append(asked).append(' ')
                    .append(entered).append(' ').append(left).append(';');
        }
    }
}
