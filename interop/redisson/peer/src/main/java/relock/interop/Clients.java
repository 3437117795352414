package relock.interop;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/**
 * The Redisson clients of this process. Requests go to the first one. The others are as clients of
 * other processes, with owners, connections and subscriptions of their own: see Bench.
 */
final class Clients {
    private final Config config;
    private final List<RedissonClient> all = new CopyOnWriteArrayList<>();

    Clients(Config config) {
        this.config = config;
        all.add(Redisson.create(config));
    }

    RedissonClient first() {
        return all.get(0);
    }

    /** One of those that are open, for the i-th of some threads. */
    Operations of(int i) {
        return new Operations(this, all.get(i % all.size()));
    }

    /** Opens or closes clients until there are n. On a single server only. */
    synchronized void open(int n) {
        while (all.size() > n) {
            all.remove(all.size() - 1).shutdown();
        }
        while (all.size() < n) {
            // One thread of this process uses it: the usual 48 threads and 24 connections would be idle,
            // and hundreds of clients could not have them.
            Config small = new Config(config);
            small.setThreads(2).setNettyThreads(2);
            small.useSingleServer().setConnectionMinimumIdleSize(1);
            all.add(Redisson.create(small));
        }
    }
}
