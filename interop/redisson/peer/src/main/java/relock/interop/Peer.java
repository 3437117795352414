package relock.interop;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Semaphore;
import org.redisson.Redisson;
import org.redisson.config.BaseConfig;
import org.redisson.config.ClusterServersConfig;
import org.redisson.config.Config;
import org.redisson.config.Protocol;
import org.redisson.config.ReadMode;
import org.redisson.config.ShardedSubscriptionMode;
import org.redisson.misc.ReclosableLatch;

/**
 * A Java process with Redisson that does what it is told on standard input, one request a
 * line, and answers on standard output, one line each, in any order:
 *
 * <pre>
 * request: id TAB thread TAB kind TAB name TAB operation [TAB argument]...
 * answer:  id TAB ok|error TAB began TAB ended TAB value or error
 * </pre>
 *
 * Each thread that is named is a Java thread of its own, since Redisson's locks belong to
 * threads. Times are nanoseconds of the wall clock, taken around the operation. The
 * process ends with its standard input.
 */
public final class Peer {
    private final Clients clients;
    private final Operations operations;
    private final PrintStream out;
    private final Map<String, Worker> workers = new ConcurrentHashMap<>();

    private Peer(Clients clients, PrintStream out) {
        this.clients = clients;
        this.operations = clients.of(0);
        this.out = out;
    }

    /** A Java thread, and the name by which requests know it. */
    private record Worker(ExecutorService executor, Thread thread) {}

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(new java.io.FileOutputStream(java.io.FileDescriptor.out), false, StandardCharsets.UTF_8);
        Peer peer = new Peer(new Clients(config(args)), out);
        peer.say("ready\t" + jar() + "\t" + peer.clients.first().getId());
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            peer.handle(line.split("\t", -1));
        }
        // What is held ends with its lease, as if the process had been killed: a test that
        // wants it released says so.
        Runtime.getRuntime().halt(0);
    }

    /** Arguments are key=value: mode, nodes, master, watchdog (ms), prefix, protocol, sharded, timeout (ms). */
    private static Config config(String[] args) throws ReflectiveOperationException {
        Map<String, String> given = new ConcurrentHashMap<>();
        for (String arg : args) {
            String[] pair = arg.split("=", 2);
            given.put(pair[0], pair[1]);
        }
        Config config = new Config();
        config.setProtocol(Protocol.valueOf(given.getOrDefault("protocol", "RESP2")));
        config.setLockWatchdogTimeout(Long.parseLong(given.getOrDefault("watchdog", "30000")));
        String[] nodes = Arrays.stream(given.get("nodes").split(",")).map(a -> "redis://" + a).toArray(String[]::new);
        BaseConfig<?> servers;
        if (given.get("mode").equals("cluster")) {
            ClusterServersConfig cluster = config.useClusterServers().addNodeAddress(nodes);
            cluster.setShardedSubscriptionMode(ShardedSubscriptionMode.valueOf(given.getOrDefault("sharded", "AUTO")));
            servers = cluster;
        } else if (given.get("mode").equals("replicated")) {
            // Questions go to the master too: the answers of a replica may be late.
            servers = config.useMasterSlaveServers().setReadMode(ReadMode.MASTER)
                    .setMasterAddress(nodes[0]).addSlaveAddress(nodes[1]);
        } else if (given.get("mode").equals("sentinel")) {
            servers = config.useSentinelServers().setReadMode(ReadMode.MASTER)
                    .setMasterName(given.get("master")).addSentinelAddress(nodes);
        } else {
            servers = config.useSingleServer().setAddress(nodes[0]);
        }
        servers.setTimeout(Integer.parseInt(given.getOrDefault("timeout", "3000")));
        setPrefix(servers, given.getOrDefault("prefix", ""));
        return config;
    }

    /** A NameMapper that adds a prefix: by reflection, since it is in another package in Redisson 3. */
    private static void setPrefix(BaseConfig<?> servers, String prefix) throws ReflectiveOperationException {
        if (prefix.isEmpty()) {
            return;
        }
        Method set = Arrays.stream(servers.getClass().getMethods())
                .filter(m -> m.getName().equals("setNameMapper")).findFirst().orElseThrow();
        Class<?> mapper = set.getParameterTypes()[0];
        set.invoke(servers, Proxy.newProxyInstance(mapper.getClassLoader(), new Class<?>[] {mapper},
                (self, method, args) -> switch (method.getName()) {
                    case "map" -> prefix + args[0];
                    case "unmap" -> ((String) args[0]).substring(prefix.length());
                    default -> throw new UnsupportedOperationException(method.getName());
                }));
    }

    /** The file that Redisson comes from, which tells its version. */
    private static String jar() {
        String path = Redisson.class.getProtectionDomain().getCodeSource().getLocation().getPath();
        return path.substring(path.lastIndexOf('/') + 1);
    }

    private void handle(String[] request) {
        String id = request[0];
        Worker worker = workers.computeIfAbsent(request[1], Peer::worker);
        if (request[4].equals("parked")) {
            answer(id, now(), "ok", parked(worker.thread) ? "true" : "false");
            return;
        }
        worker.executor.execute(() -> {
            long began = now();
            try {
                answer(id, began, "ok", operations.run(request[2], request[3], request[4],
                        Arrays.copyOfRange(request, 5, request.length)));
            } catch (Throwable e) {
                answer(id, began, "error", e.getClass().getSimpleName() + ": " + e.getMessage());
            }
        });
    }

    private static Worker worker(String name) {
        ExecutorService executor = Executors.newSingleThreadExecutor(run -> {
            Thread thread = new Thread(run, name);
            thread.setDaemon(true);
            return thread;
        });
        try {
            return new Worker(executor, executor.submit(Thread::currentThread).get());
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    /**
     * Whether a thread sleeps in Redisson's wait for a message. All of its locks wait on a
     * java.util.concurrent.Semaphore that the messages release, and its latches on a
     * ReclosableLatch; while a thread waits for an answer of Redis it does so elsewhere. A thread
     * may be inside of these without sleeping: the first in a process to subscribe makes a
     * Semaphore, and loads classes meanwhile.
     */
    private static boolean parked(Thread thread) {
        StackTraceElement[] frames = thread.getStackTrace();
        if (frames.length == 0 || !frames[0].getMethodName().equals("park")) {
            return false;
        }
        for (StackTraceElement frame : frames) {
            String in = frame.getClassName();
            if (in.equals(Semaphore.class.getName()) || in.equals(ReclosableLatch.class.getName())) {
                return true;
            }
        }
        return false;
    }

    /** Nanoseconds of the wall clock, which other processes of this machine share. */
    static long now() {
        Instant now = Instant.now();
        return now.getEpochSecond() * 1_000_000_000L + now.getNano();
    }

    private void answer(String id, long began, String outcome, String value) {
        long ended = now();
        say(id + "\t" + outcome + "\t" + began + "\t" + ended + "\t" + value.replace('\n', ' ').replace('\t', ' '));
    }

    private synchronized void say(String line) {
        out.print(line + "\n");
        out.flush();
    }
}
