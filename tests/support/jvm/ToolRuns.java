import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

import org.apache.kafka.common.utils.Exit;

/** Kafka's tools many times in one JVM: a line with a class and its arguments, separated by tabs, in; status, sizes and output out. */
public class ToolRuns {
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

    /** An error, so that no tool catches it with its exceptions. */
    static final class Ended extends Error {
        final int status;

        Ended(int status) {
            super(null, null, false, false);
            this.status = status;
        }
    }

    static int run(String[] words, PrintStream err) throws Exception {
        String[] arguments = Arrays.copyOfRange(words, 1, words.length);
        try {
            Class.forName(words[0]).getMethod("main", String[].class).invoke(null, (Object) arguments);
            return 0;
        } catch (InvocationTargetException wrapped) {
            if (wrapped.getCause() instanceof Ended) {
                return ((Ended) wrapped.getCause()).status;
            }
            wrapped.getCause().printStackTrace(err);
            return 1;
        }
    }

    public static void main(String[] arguments) throws Exception {
        org.apache.log4j.Logger.getRootLogger().addAppender(new org.apache.log4j.varia.NullAppender());
        Exit.setExitProcedure((status, message) -> {
            throw new Ended(status);
        });
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
            int status = run(line.split("\t", -1), errStream);
            outStream.flush();
            errStream.flush();
            answers.printf("%d %d %d%n", status, out.target.size(), err.target.size());
            out.target.writeTo(answers);
            err.target.writeTo(answers);
            answers.flush();
        }
        answers.flush();
        Runtime.getRuntime().halt(0);
    }
}
