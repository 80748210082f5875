import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.ExponentialBackoffRetry;

/** The Java side of docs/coming_from/curator.md. */
public final class CuratorReport {
    public static void main(String[] arguments) throws Exception {
        String hosts = arguments[0];
        // [lock]
        CuratorFramework client = CuratorFrameworkFactory.newClient(
            hosts, new ExponentialBackoffRetry(100, 10));
        client.start();
        InterProcessMutex lock =
            new InterProcessMutex(client, "/locks/report");

        if (lock.acquire(30, TimeUnit.SECONDS)) {
            try {
                makeReport();
            } finally {
                lock.release();
            }
        }
        // [/lock]
        client.close();
    }

    private static void makeReport() throws Exception {
        int code = new ProcessBuilder("./make-report").inheritIO().start().waitFor();
        if (code != 0) throw new IllegalStateException("make-report: " + code);
    }
}
