package odradek.harness;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** The port of a broker for its harness; daemon.py has what can be asked there. */
final class SideDoor {
    /** The principal of the harness, which has to be a super user. */
    static final String PRINCIPAL = "User:odradek-harness";
    private static final int QUESTION_BYTES = 256;
    private static final int TIMEOUT_MS = 20_000;

    private SideDoor() {}

    /** A connection on which Kafka's requests are answered as on a listener. */
    static Socket connect(int port, String listener) throws IOException {
        return open(port, "listener " + listener);
    }

    /** The answer to a question in words. */
    static String ask(int port, String question) {
        try (Socket socket = open(port, question)) {
            return new String(socket.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static Socket open(int port, String question) throws IOException {
        byte[] padded = new byte[QUESTION_BYTES];
        Arrays.fill(padded, (byte) ' ');
        byte[] bytes = question.getBytes(StandardCharsets.UTF_8);
        System.arraycopy(bytes, 0, padded, 0, bytes.length);
        Socket socket = new Socket();
        try {
            socket.setSoTimeout(TIMEOUT_MS);
            socket.connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), TIMEOUT_MS);
            socket.getOutputStream().write(padded);
            return socket;
        } catch (IOException e) {
            socket.close();
            throw e;
        }
    }
}
