import com.hazelcast.core.HazelcastInstance;
import com.hazelcast.cp.lock.FencedLock;
import java.util.concurrent.TimeUnit;

/** The Java side of docs/coming_from/hazelcast.md. Debian has no Hazelcast, so this is not compiled here. */
public final class HazelcastReport {
    static void report(HazelcastInstance hazelcast) {
        // [lock]
        FencedLock lock =
            hazelcast.getCPSubsystem().getLock("report");

        long token = lock.tryLockAndGetFence(30, TimeUnit.SECONDS);
        if (token != FencedLock.INVALID_FENCE) {
            try {
                save(token);
            } finally {
                lock.unlock();
            }
        }
        // [/lock]
    }

    private static void save(long token) {}
}
