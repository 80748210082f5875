// A process full of Curator clients, run by the tests and not by hand (tests/interop/peer.hpp). Commands come on
// standard input, one a line, fields separated by tabs: number, client, verb, arguments. Each is answered by one line:
// the number, "ok" or "error", fields. The commands of one client are done one after the other, on a thread of its own,
// since Curator's locks belong to threads; those of different clients beside each other.
import java.io.BufferedReader;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.RandomAccessFile;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.atomic.AtomicValue;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicInteger;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicNumber;
import org.apache.curator.framework.recipes.atomic.PromotedToLock;
import org.apache.curator.framework.recipes.barriers.DistributedBarrier;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.leader.Participant;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMultiLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.recipes.locks.Revoker;
import org.apache.curator.framework.recipes.shared.SharedCount;
import org.apache.curator.framework.recipes.shared.SharedValue;
import org.apache.curator.framework.recipes.shared.VersionedValue;
import org.apache.curator.framework.recipes.nodes.GroupMember;
import org.apache.curator.retry.ExponentialBackoffRetry;

public final class CuratorPeer {
    /** What every kind of lock can do. */
    private interface Lock {
        boolean acquire(long millis) throws Exception; // negative: for ever

        default boolean acquireMany(int leases, long millis) throws Exception {
            throw new IllegalArgumentException("this lock has one lease");
        }

        void release() throws Exception;

        Collection<String> participants() throws Exception; // paths of their nodes
    }

    /** A leadership is a lock whose contenders have ids, which Curator reads itself. */
    private interface Election extends Lock {
        Collection<Participant> candidates() throws Exception;
    }

    /** How often the holders and waiters of each path were asked to give way. */
    private static final Map<String, AtomicInteger> asked = new ConcurrentHashMap<>();

    private static final class Client {
        private final ExecutorService thread = Executors.newSingleThreadExecutor(CuratorPeer::daemon);
        private final Map<String, Lock> locks = new HashMap<>();
        private final Map<String, InterProcessMutex> mutexes = new HashMap<>();
        private final Map<String, InterProcessReadWriteLock> readWriteLocks = new HashMap<>();
        private final Map<String, SharedValue> sharedValues = new HashMap<>();
        private final Map<String, SharedCount> sharedCounts = new HashMap<>();
        private final Map<String, GroupMember> members = new HashMap<>();
        private final Map<String, DistributedDoubleBarrier> doubleBarriers = new HashMap<>();
        private InterProcessMultiLock set;
        private CuratorFramework curator;

        List<String> run(String verb, String[] a) throws Exception {
            switch (verb) {
                case "open": // hosts, session timeout, dialect (there is only one here)
                    curator = CuratorFrameworkFactory.builder()
                            .connectString(a[0])
                            .sessionTimeoutMs(Integer.parseInt(a[1]))
                            .connectionTimeoutMs(15000)
                            .retryPolicy(new ExponentialBackoffRetry(100, 8))
                            .build();
                    curator.start();
                    curator.blockUntilConnected();
                    return List.of(Long.toString(curator.getZookeeperClient().getZooKeeper().getSessionId()));
                case "version": {
                    Properties library = new Properties();
                    try (InputStream file = CuratorFramework.class.getResourceAsStream(
                            "/META-INF/maven/org.apache.curator/curator-framework/pom.properties")) {
                        library.load(file);
                    }
                    return List.of(library.getProperty("version").split("\\.")).subList(0, 2);
                }
                case "close":
                    curator.close();
                    return List.of();
                case "acquire": // kind, path, milliseconds
                    return List.of(lock(a[0], a[1]).acquire(Long.parseLong(a[2])) ? "yes" : "no");
                case "release": // kind, path
                    lock(a[0], a[1]).release();
                    return List.of();
                case "acquire_many": // kind, path, milliseconds, leases
                    return List.of(lock(a[0], a[1]).acquireMany(Integer.parseInt(a[3]), Long.parseLong(a[2])) ? "yes" : "no");
                case "acquire_revocable": // kind, path, milliseconds
                    // Before each acquire: Curator forgets it with the release.
                    mutex(a[0], a[1]).makeRevocable(lock ->
                            asked.computeIfAbsent(a[1], path -> new AtomicInteger()).incrementAndGet());
                    return List.of(lock(a[0], a[1]).acquire(Long.parseLong(a[2])) ? "yes" : "no");
                case "asked": // path; how often
                    return List.of(asked.getOrDefault(a[0], new AtomicInteger()).toString());
                case "revoke": // node
                    Revoker.attemptRevoke(curator, a[0]);
                    return List.of();
                case "acquire_set": // milliseconds for each, kind, path, kind, path, ...
                    set = sorted(a);
                    return List.of(CuratorPeer.acquire(set, Long.parseLong(a[0])) ? "yes" : "no");
                case "release_set":
                    set.release();
                    return List.of();
                case "participants": { // kind, path; what the nodes say
                    List<String> said = new ArrayList<>();
                    if (lock(a[0], a[1]) instanceof Election) {
                        for (Participant each : ((Election) lock(a[0], a[1])).candidates()) {
                            said.add(each.getId() + (each.isLeader() ? " leads" : ""));
                        }
                        return said;
                    }
                    for (String node : lock(a[0], a[1]).participants()) {
                        said.add(new String(curator.getData().forPath(node), StandardCharsets.UTF_8));
                    }
                    return said;
                }
                case "number": { // kind, path, what, number, number; whether it has changed, before, after
                    long first = a.length > 3 ? Long.parseLong(a[3]) : 0;
                    long second = a.length > 4 ? Long.parseLong(a[4]) : 0;
                    return a[0].equals("long")
                            ? number(longNumber(a[1], null), a[2], first, second)
                            : number(intNumber(a[1]), a[2], (int) first, (int) second);
                }
                case "increment": // kind, path, rounds, path of a lock or nothing
                    for (int done = 0; done < Integer.parseInt(a[2]); ) {
                        String lock = a.length > 3 ? a[3] : null;
                        DistributedAtomicNumber<?> counted = a[0].equals("long") ? longNumber(a[1], lock) : intNumber(a[1]);
                        done += counted.increment().succeeded() ? 1 : 0;
                    }
                    return List.of();
                case "shared": // path, seed, what, value; version and value, or whether it was written
                    return shared(a[0], a[1], a[2], a.length > 3 ? a[3] : "");
                case "shared_count": // path, seed, what, count
                    return sharedCount(a[0], Integer.parseInt(a[1]), a[2], a.length > 3 ? Integer.parseInt(a[3]) : 0);
                case "count": // kind, path, rounds, file
                    for (int i = 0; i < Integer.parseInt(a[2]); ++i) {
                        count(lock(a[0], a[1]), a[3]);
                    }
                    return List.of();
                case "look": // kind, path, rounds, file
                    for (int i = 0; i < Integer.parseInt(a[2]); ++i) {
                        look(lock(a[0], a[1]), a[3]);
                    }
                    return List.of();
                case "group_join": { // path, id, payload
                    GroupMember member = new GroupMember(curator, a[0], a[1], a[2].getBytes(StandardCharsets.UTF_8));
                    member.start();
                    members.put(a[0], member);
                    return List.of();
                }
                case "group_payload": // path, payload
                    members.get(a[0]).setThisData(a[1].getBytes(StandardCharsets.UTF_8));
                    return List.of();
                case "group_leave": // path
                    members.remove(a[0]).close();
                    return List.of();
                case "group_members": { // path; id=payload, in the order of the ids
                    List<String> said = new ArrayList<>();
                    new TreeMap<>(members.get(a[0]).getCurrentMembers()).forEach((id, payload) ->
                            said.add(id + "=" + new String(payload, StandardCharsets.UTF_8)));
                    return said;
                }
                case "barrier_set": // path
                    new DistributedBarrier(curator, a[0]).setBarrier();
                    return List.of();
                case "barrier_remove": // path
                    new DistributedBarrier(curator, a[0]).removeBarrier();
                    return List.of();
                case "barrier_wait": // path
                    new DistributedBarrier(curator, a[0]).waitOnBarrier();
                    return List.of();
                case "double_enter": // path, members
                    doubleBarriers.computeIfAbsent(a[0], path ->
                            new DistributedDoubleBarrier(curator, path, Integer.parseInt(a[1]))).enter();
                    return List.of();
                case "double_leave": // path
                    doubleBarriers.remove(a[0]).leave();
                    return List.of();
                default:
                    throw new IllegalArgumentException("unknown verb " + verb);
            }
        }

        private Lock lock(String kind, String path) {
            return locks.computeIfAbsent(kind + " " + path, key -> make(kind, path));
        }

        private Lock make(String kind, String path) {
            switch (kind) {
                case "mutex":
                case "write":
                case "read":
                    return of(mutex(kind, path));
                case "semaphore_mutex":
                    return of(curator, path, new InterProcessSemaphoreMutex(curator, path));
                case "latch":
                    return latch(curator, path);
                case "selector":
                    return selector(curator, path);
                case "semaphore2": // one lease of two
                    return of(path, new InterProcessSemaphoreV2(curator, path, 2));
                default:
                    throw new IllegalArgumentException("unknown kind of lock " + kind);
            }
        }

        /** A mutex, or a side of a read-write lock, which is one to Curator. */
        private InterProcessMutex mutex(String kind, String path) {
            switch (kind) {
                case "mutex":
                    return mutexes.computeIfAbsent(path, key -> new InterProcessMutex(curator, path));
                case "write":
                    return readWriteLock(path).writeLock();
                case "read":
                    return readWriteLock(path).readLock();
                default:
                    throw new IllegalArgumentException("no kind of mutex: " + kind);
            }
        }

        /** One lock of several, taken in the order of their paths, as is good practice where they are taken one by one. */
        private InterProcessMultiLock sorted(String[] a) {
            Map<String, InterProcessLock> byPath = new TreeMap<>();
            for (int i = 1; i + 1 < a.length; i += 2) {
                byPath.put(a[i + 1], mutex(a[i], a[i + 1]));
            }
            return new InterProcessMultiLock(new ArrayList<>(byPath.values()));
        }

        private DistributedAtomicLong longNumber(String path, String lock) {
            ExponentialBackoffRetry retry = new ExponentialBackoffRetry(1, 3);
            if (lock == null) {
                return new DistributedAtomicLong(curator, path, retry);
            }
            PromotedToLock promoted =
                    PromotedToLock.builder().lockPath(lock).timeout(30, TimeUnit.SECONDS).retryPolicy(retry).build();
            return new DistributedAtomicLong(curator, path, retry, promoted);
        }

        private DistributedAtomicInteger intNumber(String path) {
            return new DistributedAtomicInteger(curator, path, new ExponentialBackoffRetry(1, 3));
        }

        private List<String> shared(String path, String seed, String what, String value) throws Exception {
            if (!sharedValues.containsKey(path)) {
                SharedValue made = new SharedValue(curator, path, seed.getBytes(StandardCharsets.UTF_8));
                made.start();
                sharedValues.put(path, made);
            }
            SharedValue known = sharedValues.get(path);
            byte[] bytes = value.getBytes(StandardCharsets.UTF_8);
            switch (what) {
                case "get": {
                    VersionedValue<byte[]> latest = known.getVersionedValue();
                    return List.of(
                            Integer.toString(latest.getVersion()), new String(latest.getValue(), StandardCharsets.UTF_8));
                }
                case "set":
                    known.setValue(bytes);
                    return List.of();
                default:
                    return List.of(known.trySetValue(known.getVersionedValue(), bytes) ? "yes" : "no");
            }
        }

        private List<String> sharedCount(String path, int seed, String what, int count) throws Exception {
            if (!sharedCounts.containsKey(path)) {
                SharedCount made = new SharedCount(curator, path, seed);
                made.start();
                sharedCounts.put(path, made);
            }
            SharedCount known = sharedCounts.get(path);
            switch (what) {
                case "get":
                    return List.of(
                            Integer.toString(known.getVersionedValue().getVersion()), Integer.toString(known.getCount()));
                case "set":
                    known.setCount(count);
                    return List.of();
                default:
                    return List.of(known.trySetCount(known.getVersionedValue(), count) ? "yes" : "no");
            }
        }

        private InterProcessReadWriteLock readWriteLock(String path) {
            return readWriteLocks.computeIfAbsent(path, key -> new InterProcessReadWriteLock(curator, path));
        }
    }

    private static <T extends Number> List<String> number(
            DistributedAtomicNumber<T> number, String what, T first, T second) throws Exception {
        switch (what) {
            case "get":
                return result(number.get());
            case "add":
                return result(number.add(first));
            case "compare":
                return result(number.compareAndSet(first, second));
            case "exchange":
                return result(number.trySet(first));
            case "initialize":
                return List.of(number.initialize(first) ? "yes" : "no");
            default:
                number.forceSet(first);
                return List.of();
        }
    }

    private static List<String> result(AtomicValue<?> value) throws Exception {
        return List.of(value.succeeded() ? "yes" : "no", "" + value.preValue(), "" + value.postValue());
    }

    private static final String ID = "a Curator client";

    private static Election latch(CuratorFramework curator, String path) {
        return new Election() {
            private LeaderLatch latch;

            @Override
            public boolean acquire(long millis) throws Exception {
                latch = new LeaderLatch(curator, path, ID);
                latch.start();
                if (millis < 0) {
                    latch.await();
                    return true;
                }
                if (latch.await(millis, TimeUnit.MILLISECONDS)) {
                    return true;
                }
                latch.close();
                awaitRequests(curator);
                return false;
            }

            @Override
            public void release() throws Exception {
                latch.close();
            }

            @Override
            public Collection<String> participants() {
                return List.of();
            }

            @Override
            public Collection<Participant> candidates() throws Exception {
                return new LeaderLatch(curator, path, ID).getParticipants();
            }
        };
    }

    private static Election selector(CuratorFramework curator, String path) {
        return new Election() {
            private CountDownLatch resigned;

            @Override
            public boolean acquire(long millis) throws Exception {
                CountDownLatch leads = new CountDownLatch(1);
                CountDownLatch resigns = new CountDownLatch(1);
                resigned = resigns;
                // So that the end of the attempt can be awaited: close() only interrupts it.
                ExecutorService thread = Executors.newSingleThreadExecutor(CuratorPeer::daemon);
                LeaderSelector selector = new LeaderSelector(curator, path, thread, new LeaderSelectorListenerAdapter() {
                    @Override
                    public void takeLeadership(CuratorFramework client) throws Exception {
                        leads.countDown();
                        resigns.await();
                    }
                });
                selector.setId(ID);
                selector.start();
                thread.shutdown();
                if (millis < 0) {
                    leads.await();
                    return true;
                }
                if (leads.await(millis, TimeUnit.MILLISECONDS)) {
                    return true;
                }
                selector.close();
                if (!thread.awaitTermination(1, TimeUnit.MINUTES)) {
                    throw new IllegalStateException("the attempt of a closed LeaderSelector does not end");
                }
                awaitRequests(curator);
                return false;
            }

            @Override
            public void release() {
                resigned.countDown();
            }

            @Override
            public Collection<String> participants() {
                return List.of();
            }

            @Override
            public Collection<Participant> candidates() throws Exception {
                return new LeaderSelector(curator, path, new LeaderSelectorListenerAdapter() {
                    @Override
                    public void takeLeadership(CuratorFramework client) {}
                }).getParticipants();
            }
        };
    }

    /** The servers have executed what was sent before: a node that an attempt makes is there, or gone again. */
    private static void awaitRequests(CuratorFramework curator) throws Exception {
        curator.checkExists().forPath("/");
    }

    private static boolean acquire(InterProcessLock lock, long millis) throws Exception {
        if (millis >= 0) {
            return lock.acquire(millis, TimeUnit.MILLISECONDS);
        }
        lock.acquire();
        return true;
    }

    private static Lock of(InterProcessMutex mutex) {
        return new Lock() {
            @Override
            public boolean acquire(long millis) throws Exception {
                return CuratorPeer.acquire(mutex, millis);
            }

            @Override
            public void release() throws Exception {
                mutex.release();
            }

            @Override
            public Collection<String> participants() throws Exception {
                return mutex.getParticipantNodes();
            }
        };
    }

    private static Lock of(CuratorFramework curator, String path, InterProcessSemaphoreMutex mutex) {
        return new Lock() {
            @Override
            public boolean acquire(long millis) throws Exception {
                return CuratorPeer.acquire(mutex, millis);
            }

            @Override
            public void release() throws Exception {
                mutex.release();
            }

            @Override
            public Collection<String> participants() throws Exception {
                List<String> nodes = new ArrayList<>();
                for (String node : curator.getChildren().forPath(path + "/leases")) {
                    nodes.add(path + "/leases/" + node);
                }
                return nodes;
            }
        };
    }

    private static Lock of(String path, InterProcessSemaphoreV2 semaphore) {
        Deque<Lease> leases = new ArrayDeque<>();
        return new Lock() {
            @Override
            public boolean acquire(long millis) throws Exception {
                Lease lease = millis >= 0 ? semaphore.acquire(millis, TimeUnit.MILLISECONDS) : semaphore.acquire();
                if (lease != null) {
                    leases.push(lease);
                }
                return lease != null;
            }

            @Override
            public boolean acquireMany(int wanted, long millis) throws Exception {
                Collection<Lease> all = millis >= 0
                        ? semaphore.acquire(wanted, millis, TimeUnit.MILLISECONDS)
                        : semaphore.acquire(wanted);
                if (all != null) {
                    leases.addAll(all);
                }
                return all != null;
            }

            @Override
            public void release() {
                semaphore.returnLease(leases.pop());
            }

            @Override
            public Collection<String> participants() throws Exception {
                List<String> nodes = new ArrayList<>();
                for (String node : semaphore.getParticipantNodes()) {
                    nodes.add(path + "/leases/" + node);
                }
                return nodes;
            }
        };
    }

    /** Reads the number in the file and writes the next one, with nothing but the lock to keep others from it. */
    private static void count(Lock lock, String path) throws Exception {
        lock.acquire(-1);
        try (RandomAccessFile file = new RandomAccessFile(path, "rw")) {
            long value = number(file);
            Thread.yield();
            file.seek(0);
            file.write(String.format("%019d\n", value + 1).getBytes(StandardCharsets.US_ASCII));
        } finally {
            lock.release();
        }
    }

    private static void look(Lock lock, String path) throws Exception {
        lock.acquire(-1);
        try (RandomAccessFile file = new RandomAccessFile(path, "r")) {
            long value = number(file);
            Thread.yield();
            if (number(file) != value) {
                throw new IllegalStateException("the number changed while it was locked");
            }
        } finally {
            lock.release();
        }
    }

    private static long number(RandomAccessFile file) throws Exception {
        byte[] text = new byte[19];
        file.seek(0);
        file.readFully(text);
        return Long.parseLong(new String(text, StandardCharsets.US_ASCII));
    }

    private static Thread daemon(Runnable work) {
        Thread thread = new Thread(work);
        thread.setDaemon(true);
        return thread;
    }

    private static synchronized void answer(String number, String how, List<String> fields) {
        StringBuilder line = new StringBuilder(number).append('\t').append(how);
        for (String field : fields) {
            line.append('\t').append(field.replaceAll("[\t\r\n]", " "));
        }
        System.out.println(line);
        System.out.flush();
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, Client> clients = new HashMap<>();
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String[] words = line.split("\t", -1);
            Client client = clients.computeIfAbsent(words[1], name -> new Client());
            String[] rest = java.util.Arrays.copyOfRange(words, 3, words.length);
            client.thread.execute(() -> {
                try {
                    answer(words[0], "ok", client.run(words[2], rest));
                } catch (Throwable error) {
                    answer(words[0], "error", List.of(error.toString()));
                }
            });
        }
        Runtime.getRuntime().halt(0); // whoever started us is gone, or wants us gone
    }
}
