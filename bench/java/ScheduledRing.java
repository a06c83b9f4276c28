import java.lang.management.ManagementFactory;
import java.util.ArrayDeque;
import java.util.SplittableRandom;
import java.util.concurrent.BrokenBarrierException;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;

/**
 * The rings of `tickwheel-bench timer` for the JDK: each producer schedules one and cancels the oldest.
 * Arguments: producers, timers pending in each ring, pairs of all, least and greatest delay in microseconds.
 */
public final class ScheduledRing {
    public static void main(String[] arguments) throws Exception {
        int producers = Integer.parseInt(arguments[0]);
        int pending = Integer.parseInt(arguments[1]);
        long each = Long.parseLong(arguments[2]) / producers;
        long least = Long.parseLong(arguments[3]);
        long greatest = Long.parseLong(arguments[4]);

        var timer = new ScheduledThreadPoolExecutor(1);
        // Otherwise cancelled ones stay until they are due.
        timer.setRemoveOnCancelPolicy(true);
        var gate = new CyclicBarrier(producers + 1);
        var cancelled = new LongAdder();
        for (int number = 0; number < producers; number++) {
            var ring = new Ring(timer, 7 + number, least, greatest);
            new Thread(() -> {
                for (int i = 0; i < pending; i++) {
                    ring.schedule();
                }
                // As many as are measured, for the compiler comes late.
                ring.exchange(each);
                pass(gate);
                cancelled.add(ring.exchange(each));
                pass(gate);
            }).start();
        }
        pass(gate);
        long begun = System.nanoTime();
        long cpuBegun = cpuNanos();
        pass(gate);
        // One thread takes them in turn, so what was due before has been looked at.
        timer.submit(() -> { }).get();
        double nanos = System.nanoTime() - begun;
        double cpu = cpuNanos() - cpuBegun;
        long accepted = each * producers;
        long operations = accepted + cancelled.sum();
        System.out.println("measured " + operations);
        System.out.println("figure mops " + operations / nanos * 1e3);
        System.out.println("figure cpu_ns " + cpu / operations);
        System.out.println("check accepted " + accepted);
        timer.shutdownNow();
    }

    private static long cpuNanos() {
        var system = (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        return system.getProcessCpuTime();
    }

    private static void pass(CyclicBarrier gate) {
        try {
            gate.await();
        } catch (InterruptedException | BrokenBarrierException broken) {
            throw new IllegalStateException(broken);
        }
    }

    /** A thread's timers. */
    private static final class Ring {
        private static final Runnable NOTHING = () -> { };

        private final ScheduledThreadPoolExecutor timer;
        private final SplittableRandom random;
        private final long least;
        private final long greatest;
        private final ArrayDeque<Future<?>> pending = new ArrayDeque<>();

        Ring(ScheduledThreadPoolExecutor timer, long seed, long least, long greatest) {
            this.timer = timer;
            this.random = new SplittableRandom(seed);
            this.least = least;
            this.greatest = greatest;
        }

        void schedule() {
            pending.add(timer.schedule(NOTHING, random.nextLong(least, greatest), TimeUnit.MICROSECONDS));
        }

        /** How many cancels came in time. */
        long exchange(long pairs) {
            long cancelled = 0;
            for (long i = 0; i < pairs; i++) {
                schedule();
                if (pending.remove().cancel(false)) {
                    cancelled++;
                }
            }
            return cancelled;
        }
    }
}
