package odradek.harness;

import java.lang.reflect.Method;
import net.bytebuddy.implementation.bind.annotation.AllArguments;
import net.bytebuddy.implementation.bind.annotation.Origin;
import net.bytebuddy.implementation.bind.annotation.RuntimeType;
import net.bytebuddy.implementation.bind.annotation.This;

/** Where the calls on a rewritten KafkaServer end up. It is read while that class is loaded, and so does not name it. */
public final class Face {
    private Face() {}

    @RuntimeType
    public static Object call(@This Object server, @Origin Method method, @AllArguments Object[] arguments) {
        return LiveBroker.of(server).call(method.getName(), arguments);
    }
}
