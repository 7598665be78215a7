import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.apache.kafka.common.security.kerberos.KerberosName;
import org.apache.kafka.common.security.kerberos.KerberosShortNamer;

/**
 * Prints the short names that Apache Kafka gives to random principals by random rules, as JSON: [[rules], name, short
 * name], null for what it refuses. Run from the checkout:
 *
 * java -Dfile.encoding=UTF-8 -cp '.cache/jvm/libs/*' tests/golden/kerberos/CaptureShortNames.java > tests/golden/kerberos/short_names.json
 */
public class CaptureShortNames {
    private static final int CASES = 500;
    private static final String REALM = "REALM.COM";
    private static final String[] NAMES = {
        "alice", "App.Service", "kafka", "HTTP", "a.b-c_d", "ABCabcABC", "x$1", "user1", "", "a\\\\b", "Zoë", "a b"};
    private static final String[] REALMS = {REALM, "FOO.COM", "", "realm.com"};
    private static final String[] FORMATS = {
        "$1", "$1@$0", "$2", "$1-$2", "$0", "$1;$2", "x", "", "$3", "$", "$a", "$1$1", "$01", "$99999999999"};
    private static final String[] MATCHES = {
        "(.*)", "(App\\\\..*)", "(.*@REALM\\\\.COM)", "([a-z]+)", "(ABC.*)", "(.*;.*)", "()", "(\\\\w+)", "([^;]*)", "(a|b)"};
    private static final String[] FROMS = {
        "App\\\\.(.*)", "ABC", "@.*", "a", "(a)(l)", "[A-Z]", ".*", "", "(x)?b", "-", "(?i)abc", "\\\\d+", "(a", "*"};
    private static final String[] TOS = {
        "", "$1", "X", "$2$1", "$0", "\\\\$1", "$3", "$", "\\\\", "$12", "a", "@", "${n}", "-$1-"};
    private static final Random RANDOM = new Random(20240501);

    private static String one(String[] of) {
        return of[RANDOM.nextInt(of.length)].replace("\\\\", "\\");
    }

    private static String rule() {
        if (RANDOM.nextInt(6) == 0)
            return "DEFAULT";
        String rule = "RULE:[" + (1 + RANDOM.nextInt(2)) + ":" + one(FORMATS) + "]";
        if (RANDOM.nextBoolean())
            rule += one(MATCHES);
        if (RANDOM.nextBoolean())
            rule += "s/" + one(FROMS) + "/" + one(TOS) + "/" + (RANDOM.nextBoolean() ? "g" : "");
        switch (RANDOM.nextInt(6)) {
            case 0: return rule + "/L";
            case 1: return rule + "/U";
            case 2: return rule + "L";
            default: return rule;
        }
    }

    private static String name() {
        String name = one(NAMES) + (RANDOM.nextBoolean() ? "/" + one(NAMES) : "");
        return RANDOM.nextInt(8) == 0 ? name : name + "@" + one(REALMS);
    }

    private static String json(String text) {
        return text == null ? "null" : "\"" + text.replace("\\", "\\\\").replace("\"", "\\\"") + "\"";
    }

    public static void main(String[] arguments) {
        List<String> cases = new ArrayList<>();
        while (cases.size() < CASES) {
            List<String> rules = new ArrayList<>();
            for (int count = 1 + RANDOM.nextInt(3); count > 0; count--)
                rules.add(rule());
            String name = name();
            String found = null;
            try {
                found = KerberosShortNamer.fromUnparsedRules(REALM, rules).shortName(KerberosName.parse(name));
            } catch (Exception refused) {
                // null
            }
            cases.add("[[" + String.join(", ", rules.stream().map(CaptureShortNames::json).toList()) + "], "
                + json(name) + ", " + json(found) + "]");
        }
        System.out.println("[\n" + String.join(",\n", cases) + "\n]");
    }
}
