import java.nio.file.Path;
import java.security.URIParameter;
import java.util.TreeMap;
import javax.security.auth.login.AppConfigurationEntry;
import javax.security.auth.login.Configuration;

/** Tells what Java's own reader finds in JAAS files: a line for each, the sections being named. */
public class JaasSections {
    public static void main(String[] arguments) {
        String[] names = arguments[0].split(",");
        for (int i = 1; i < arguments.length; i++) {
            StringBuilder told = new StringBuilder();
            try {
                URIParameter file = new URIParameter(Path.of(arguments[i]).toUri());
                Configuration found = Configuration.getInstance("JavaLoginConfig", file);
                for (String name : names) {
                    AppConfigurationEntry[] entries = found.getAppConfigurationEntry(name);
                    if (entries == null) continue;
                    told.append(name).append('[');
                    for (AppConfigurationEntry one : entries)
                        told.append(one.getLoginModuleName()).append(new TreeMap<>(one.getOptions()));
                    told.append(']');
                }
            } catch (Exception wrong) {
                told = new StringBuilder("wrong");
            }
            System.out.println(told.toString().replace("\n", "\\n"));
        }
    }
}
