package odradek.harness;

/** A test asked a broker's object for what no client and no file can tell. */
public final class BeyondTheWire extends AssertionError {
    private static final long serialVersionUID = 1;

    BeyondTheWire(String what) {
        super("reaches into the broker: " + what);
    }
}
