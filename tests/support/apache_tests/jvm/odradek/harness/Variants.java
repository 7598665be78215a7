package odradek.harness;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.regex.Pattern;
import org.junit.jupiter.api.TestTemplate;
import org.junit.jupiter.api.extension.ConditionEvaluationResult;
import org.junit.jupiter.api.extension.ExecutionCondition;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.platform.commons.support.AnnotationSupport;

/**
 * Leaves out the tests, and variants of tests, that a file names: lines of a pattern, a tab and the reason. Where a pattern is
 * given for what is to run, all other tests are left out too.
 */
public final class Variants implements ExecutionCondition {
    private static final Map<Pattern, String> LEFT_OUT = read(System.getProperty("odradek.left.out"));
    private static final Pattern ONLY = Pattern.compile(System.getProperty("odradek.only", ""));

    @Override
    public ConditionEvaluationResult evaluateExecutionCondition(ExtensionContext context) {
        if (!context.getTestMethod().isPresent()) return ConditionEvaluationResult.enabled("a class");
        String test = context.getRequiredTestMethod().getName() + " " + context.getDisplayName();
        for (Map.Entry<Pattern, String> entry : LEFT_OUT.entrySet()) {
            if (entry.getKey().matcher(test).find()) return ConditionEvaluationResult.disabled(entry.getValue());
        }
        if (isContainer(context) || ONLY.matcher(test).find()) return ConditionEvaluationResult.enabled("is run");
        return ConditionEvaluationResult.disabled("not asked for");
    }

    /** Whether this is what the variants of a test are in: only each of them has a name to look at. */
    private static boolean isContainer(ExtensionContext context) {
        return AnnotationSupport.isAnnotated(context.getRequiredTestMethod(), TestTemplate.class)
            && context.getUniqueId().indexOf("[test-template-invocation:") < 0;
    }

    private static Map<Pattern, String> read(String file) {
        Map<Pattern, String> found = new LinkedHashMap<>();
        try {
            for (String line : Files.readAllLines(Path.of(file))) {
                String[] parts = line.split("\t", 2);
                found.put(Pattern.compile(parts[0]), parts[1]);
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return found;
    }
}
