package relock.interop;

import java.io.RandomAccessFile;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import org.redisson.api.RLock;

/**
 * Threads that take a lock and release it, again and again for a time, as the goroutines of
 * internal/test/benchkit do; they share the clients of this process evenly. Rounds count that enter
 * before the time is over, waits are those of all rounds, and a gate in memory that all processes
 * share sees who is inside.
 */
final class Bench {
    private static final VarHandle LONGS = MethodHandles.byteBufferViewVarHandle(long[].class, ByteOrder.nativeOrder());
    private static final long WRITER = 1L << 32;

    private final Clients clients;
    private final String kind;
    private final String name;
    private final int threads;
    private final long window; // ns
    private final long work; // ns
    private final boolean own; // a lock for each thread
    private final String gatePath; // empty: nothing is checked

    /** Arguments: threads, window in ms, work in µs, 1 for a lock each, the gate's file. */
    Bench(Clients clients, String kind, String name, String[] args) {
        this.clients = clients;
        this.kind = kind;
        this.name = name;
        this.threads = Integer.parseInt(args[0]);
        this.window = Long.parseLong(args[1]) * 1_000_000;
        this.work = Long.parseLong(args[2]) * 1_000;
        this.own = args[3].equals("1");
        this.gatePath = args[4];
    }

    /** The rounds of each thread, and all its waits in µs: "rounds:wait,wait;rounds:wait". */
    String run() throws Exception {
        ByteBuffer gate = gatePath.isEmpty() ? null : open(gatePath);
        List<Thread> all = new ArrayList<>();
        List<Throwable> failures = new ArrayList<>();
        String[] reports = new String[threads];
        long began = System.nanoTime();
        for (int i = 0; i < threads; i++) {
            int me = i;
            Operations operations = clients.of(me);
            Thread thread = new Thread(() -> {
                try {
                    reports[me] = work(operations.lock(kind, own ? name + "-" + me : name), gate, began);
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
        return String.join(";", reports);
    }

    private String work(RLock lock, ByteBuffer gate, long began) {
        StringBuilder waits = new StringBuilder();
        int rounds = 0;
        for (long asked = System.nanoTime(); asked - began < window; asked = System.nanoTime()) {
            lock.lock();
            long entered = System.nanoTime();
            try {
                inside(gate);
            } finally {
                lock.unlock();
            }
            if (entered - began <= window) {
                rounds++;
            }
            waits.append(waits.length() == 0 ? "" : ",").append((entered - asked) / 1000);
        }
        return rounds + ":" + waits;
    }

    private void inside(ByteBuffer gate) {
        if (gate != null && (long) LONGS.getAndAdd(gate, 0, WRITER) != 0) {
            LONGS.getAndAdd(gate, 8, 1L);
        }
        if (work > 0) {
            LockSupport.parkNanos(work);
        }
        if (gate != null) {
            LONGS.getAndAdd(gate, 0, -WRITER);
        }
    }

    private static ByteBuffer open(String path) throws Exception {
        try (RandomAccessFile file = new RandomAccessFile(path, "rw")) {
            return file.getChannel().map(FileChannel.MapMode.READ_WRITE, 0, 16); // the mapping stays
        }
    }
}
