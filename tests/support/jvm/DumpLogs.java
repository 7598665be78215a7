import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

/** kafka-dump-log many times in one JVM: a line of arguments, separated by tabs, in; status, sizes and output out. */
public class DumpLogs {
    static final class Switch extends OutputStream {
        ByteArrayOutputStream target = new ByteArrayOutputStream();

        @Override
        public void write(int b) {
            target.write(b);
        }

        @Override
        public void write(byte[] bytes, int offset, int length) {
            target.write(bytes, offset, length);
        }
    }

    public static void main(String[] arguments) throws Exception {
        org.apache.log4j.Logger.getRootLogger().addAppender(new org.apache.log4j.varia.NullAppender());
        PrintStream answers = System.out;
        Switch out = new Switch();
        Switch err = new Switch();
        // Scala remembers the streams it has found first, hence two that stay and change what is behind them.
        PrintStream outStream = new PrintStream(out, true, "UTF-8");
        PrintStream errStream = new PrintStream(err, true, "UTF-8");
        System.setOut(outStream);
        System.setErr(errStream);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            out.target = new ByteArrayOutputStream();
            err.target = new ByteArrayOutputStream();
            int status = 0;
            try {
                kafka.tools.DumpLogSegments.main(line.split("\t"));
            } catch (Throwable failure) {
                failure.printStackTrace(errStream);
                status = 1;
            }
            outStream.flush();
            errStream.flush();
            answers.printf("%d %d %d%n", status, out.target.size(), err.target.size());
            out.target.writeTo(answers);
            err.target.writeTo(answers);
            answers.flush();
        }
    }
}
