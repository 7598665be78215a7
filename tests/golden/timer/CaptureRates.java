import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.metrics.stats.Rate;
import org.apache.kafka.common.metrics.stats.SimpleRate;
import org.apache.kafka.common.metrics.stats.TokenBucket;

/**
 * Writes what Apache Kafka's own rates measure, in a few scenarios of random pauses and amounts:
 *   java -cp "$KAFKA_LIBS/*" CaptureRates.java > rates.txt
 */
public class CaptureRates {
    static final int[] COUNTS = {2, 3, 11, 11, 1, 4};
    static final int[] WINDOWS_S = {1, 2, 1, 1, 1, 3};
    static final double[] BOUNDS = {5, 0.5, 100, 1000, 7, 2.5};

    public static void main(String[] arguments) {
        Random random = new Random(13);
        for (int scenario = 0; scenario < COUNTS.length; scenario++) {
            int n = COUNTS[scenario], window = WINDOWS_S[scenario];
            double bound = BOUNDS[scenario];
            MetricConfig config = new MetricConfig().samples(n).timeWindow(window, TimeUnit.SECONDS)
                .quota(Quota.upperBound(bound));
            Rate rate = new Rate();
            SimpleRate simple = new SimpleRate();
            TokenBucket bucket = new TokenBucket();
            long t = 1700000000000L;
            System.out.println("new " + n + " " + window * 1000 + " " + bound);
            for (int i = 0; i < 40; i++) {
                long step = random.nextInt(4) == 0 ? random.nextInt(n * window * 1500) : random.nextInt(window * 700);
                t += step;
                double amount = random.nextInt(3) == 0 ? -1 : random.nextInt(1000) / 4.0;
                if (amount >= 0) {
                    rate.record(config, amount, t);
                    simple.record(config, amount, t);
                    bucket.record(config, amount, t);
                }
                double measured = rate.measure(config, t);
                long throttle = Math.round((measured - bound) / bound * rate.windowSize(config, t));
                double tokens = bucket.measure(config, t);
                System.out.println("at " + step + " record " + (amount < 0 ? "nothing" : amount) + " rate " + measured
                    + " window " + rate.windowSize(config, t) + " throttle " + throttle + " simple "
                    + simple.measure(config, t) + " tokens " + tokens + " wait " + Math.round(-tokens / bound * 1000));
            }
        }
    }
}
