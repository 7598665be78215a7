package odradek.harness;

import net.bytebuddy.asm.Advice;

/** Tests move their clock on so that two appends have different times in ms; the broker's clock is the real one. */
final class TimePasses {
    private TimePasses() {}

    @Advice.OnMethodEnter
    static void sleep(@Advice.Argument(0) long ms) throws InterruptedException {
        if (ms > 0) Thread.sleep(2);
    }
}
