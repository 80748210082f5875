// Measures Curator beside the library (bench/processes.hpp). Commands come on standard input, one a line, fields separated
// by tabs: number, client (ignored), verb, arguments. Each is answered by one line: the number, "ok" or "error", fields.
import com.sun.management.OperatingSystemMXBean;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMultiLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.retry.ExponentialBackoffRetry;

public final class CuratorBench {
    private static final List<CuratorFramework> sessions = new ArrayList<>();
    private static final AtomicInteger granted = new AtomicInteger();
    private static volatile long lastGrant;
    private static volatile int called;

    private static void open(int count, List<String> hosts) throws Exception {
        for (int i = 0; i < count; ++i) {
            CuratorFramework curator = CuratorFrameworkFactory.builder()
                    .connectString(hosts.get(i % hosts.size()))
                    .sessionTimeoutMs(30000)
                    .connectionTimeoutMs(15000)
                    .retryPolicy(new ExponentialBackoffRetry(100, 8))
                    .build();
            curator.start();
            curator.blockUntilConnected();
            sessions.add(curator);
        }
    }

    private static double median(long[] nanos) {
        Arrays.sort(nanos);
        return nanos[nanos.length / 2] / 1000.0;
    }

    /** As contend() of contend.hpp. */
    private static final class Contention {
        private final AtomicInteger inside = new AtomicInteger();
        // Written by the holder alone.
        private volatile int holds;
        private volatile long released;
        private volatile long begin;
        private volatile long end;

        List<String> run(String path, int warm, int count) throws Exception {
            long[] samples = new long[count];
            List<Thread> threads = new ArrayList<>();
            for (CuratorFramework session : sessions) {
                InterProcessMutex mutex = new InterProcessMutex(session, path);
                Thread thread = new Thread(() -> {
                    try {
                        while (holds < warm + count) {
                            mutex.acquire();
                            hold(System.nanoTime(), samples, warm);
                            released = System.nanoTime();
                            mutex.release();
                        }
                    } catch (Exception error) {
                        fail(error);
                    }
                });
                thread.start();
                threads.add(thread);
            }
            for (Thread thread : threads) {
                thread.join();
            }
            return numbers(median(samples), (count - 1) / ((end - begin) / 1e9));
        }

        private void hold(long now, long[] samples, int warm) {
            if (inside.getAndIncrement() != 0) {
                fail(new IllegalStateException("two sessions hold one lock"));
            }
            int sample = holds - warm;
            holds = holds + 1;
            if (sample == 0) {
                begin = now;
            }
            if (sample >= 0 && sample < samples.length) {
                samples[sample] = now - released;
                end = now;
            }
            inside.getAndDecrement();
        }
    }

    private static InterProcessLock lock(String kind, String path) {
        switch (kind) {
            case "mutex":
                return new InterProcessMutex(sessions.get(0), path);
            case "semaphore_mutex":
                return new InterProcessSemaphoreMutex(sessions.get(0), path);
            default: { // so many paths
                List<String> paths = new ArrayList<>();
                for (int i = 0; i < Integer.parseInt(kind); ++i) {
                    paths.add(path + "/" + i);
                }
                return new InterProcessMultiLock(sessions.get(0), paths);
            }
        }
    }

    /** Microseconds of acquire and release (medians), and of processor time for each cycle. */
    private static List<String> cycles(InterProcessLock lock, int count) throws Exception {
        OperatingSystemMXBean system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        long[] acquires = new long[count];
        long[] releases = new long[count];
        long processor = system.getProcessCpuTime();
        for (int i = 0; i < count; ++i) {
            long begin = System.nanoTime();
            lock.acquire();
            long held = System.nanoTime();
            lock.release();
            acquires[i] = held - begin;
            releases[i] = System.nanoTime() - held;
        }
        processor = system.getProcessCpuTime() - processor;
        return numbers(median(acquires), median(releases), processor / 1000.0 / count);
    }

    /** So many threads of one session, each of which acquires once. */
    private static void crowd(String path, int waiters) {
        granted.set(0);
        for (int i = 0; i < waiters; ++i) {
            // An object of its own for each: an event for one of an object's waiters wakes them all, and each lists.
            InterProcessMutex mutex = new InterProcessMutex(sessions.get(0), path);
            Thread thread = new Thread(null, () -> {
                try {
                    mutex.acquire();
                    lastGrant = System.nanoTime();
                    mutex.release();
                    granted.incrementAndGet();
                } catch (Exception error) {
                    fail(error);
                }
            }, "waiter", 256 * 1024);
            thread.setDaemon(true);
            thread.start();
            called = i + 1;
        }
    }

    /**
     * So many sessions acquire and release without a pause between two times (of System.nanoTime()). Each holds the lock
     * for so many nanoseconds. Answers five numbers for each hold: the session, when acquire was called and returned, when release was called and returned.
     */
    private static List<String> holds(String path, int active, long begin, long end, int held) throws Exception {
        List<List<long[]>> holds = new ArrayList<>();
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < active; ++i) {
            int number = i;
            List<long[]> mine = new ArrayList<>();
            InterProcessMutex mutex = new InterProcessMutex(sessions.get(i), path);
            Thread thread = new Thread(() -> {
                try {
                    Thread.sleep(Math.max(0, (begin - System.nanoTime()) / 1000000));
                    for (long called = System.nanoTime(); called < end; called = System.nanoTime()) {
                        mutex.acquire();
                        long granted = System.nanoTime();
                        long released = granted;
                        if (held > 0) {
                            TimeUnit.NANOSECONDS.sleep(held);
                            released = System.nanoTime();
                        }
                        mutex.release();
                        mine.add(new long[] {number, called, granted, released, System.nanoTime()});
                    }
                } catch (Exception error) {
                    fail(error);
                }
            });
            thread.start();
            threads.add(thread);
            holds.add(mine);
        }
        for (Thread thread : threads) {
            thread.join();
        }
        List<String> texts = new ArrayList<>();
        holds.forEach(mine -> mine.forEach(hold -> Arrays.stream(hold).forEach(n -> texts.add(Long.toString(n)))));
        return texts;
    }

    private static List<String> run(String verb, List<String> a) throws Exception {
        switch (verb) {
            case "open": // sessions, hosts...
                open(Integer.parseInt(a.get(0)), a.subList(1, a.size()));
                return List.of();
            case "hand_over": // path, hand-overs not measured, hand-overs
                return new Contention().run(a.get(0), Integer.parseInt(a.get(1)), Integer.parseInt(a.get(2)));
            case "holds": // path, active sessions, begin, end, how long a hold takes
                return holds(a.get(0), Integer.parseInt(a.get(1)), Long.parseLong(a.get(2)), Long.parseLong(a.get(3)),
                        Integer.parseInt(a.get(4)));
            case "cycles": // kind, path, count
                return cycles(lock(a.get(0), a.get(1)), Integer.parseInt(a.get(2)));
            case "queue": // path, waiters
                crowd(a.get(0), Integer.parseInt(a.get(1)));
                return List.of();
            case "status": // how many calls were granted, when the last one was, how many were made
                return numbers(granted.get(), lastGrant, called);
            default:
                throw new IllegalArgumentException("unknown verb " + verb);
        }
    }

    private static List<String> numbers(double... values) {
        List<String> texts = new ArrayList<>();
        for (double value : values) {
            texts.add(Double.toString(value));
        }
        return texts;
    }

    private static void fail(Throwable error) {
        System.err.println("bench: Curator failed: " + error);
        Runtime.getRuntime().halt(1);
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            List<String> words = Arrays.asList(line.split("\t", -1));
            String answer;
            try {
                answer = "ok\t" + String.join("\t", run(words.get(2), words.subList(3, words.size())));
            } catch (Throwable error) {
                answer = "error\t" + error.toString().replaceAll("[\t\r\n]", " ");
            }
            System.out.println(words.get(0) + "\t" + answer);
            System.out.flush();
        }
        Runtime.getRuntime().halt(0); // the bench has ended
    }
}
