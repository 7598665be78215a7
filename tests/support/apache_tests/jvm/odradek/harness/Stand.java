package odradek.harness;

import java.util.HashMap;
import java.util.Map;
import org.mockito.Mockito;
import org.mockito.MockMakers;
import org.mockito.invocation.InvocationOnMock;

/** Makes stand-ins for a broker's objects: some methods have answers, and all others say that they have none. */
final class Stand<T> {
    /** The value of one method; its arguments come in. */
    interface Answer {
        Object of(Object[] arguments) throws Throwable;
    }

    private final Class<T> type;
    private final Map<String, Answer> answers = new HashMap<>();

    private Stand(Class<T> type) {
        this.type = type;
    }

    static <T> Stand<T> in(Class<T> type) {
        return new Stand<>(type);
    }

    Stand<T> with(String method, Answer answer) {
        answers.put(method, answer);
        return this;
    }

    T make() {
        return Mockito.mock(type, Mockito.withSettings().stubOnly().mockMaker(MockMakers.SUBCLASS).defaultAnswer(this::answer));
    }

    private Object answer(InvocationOnMock invocation) throws Throwable {
        String method = invocation.getMethod().getName();
        Answer answer = answers.get(method);
        if (answer != null) return answer.of(invocation.getArguments());
        if (method.contains("$default$")) return invocation.callRealMethod();
        if (method.equals("toString")) return type.getSimpleName() + " of Odradek";
        throw new BeyondTheWire(type.getSimpleName() + "." + method);
    }
}
