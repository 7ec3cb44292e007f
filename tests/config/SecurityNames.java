import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.TreeSet;
import org.apache.kafka.common.config.SaslConfigs;
import org.apache.kafka.common.config.SslConfigs;
import org.apache.kafka.common.config.internals.BrokerSecurityConfigs;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import kafka.server.KafkaConfig;

/** Prints the settings that this release of Apache Kafka has, and those that its classes of security name. */
public class SecurityNames {
    public static void main(String[] arguments) throws Exception {
        for (String name : new TreeSet<>(KafkaConfig.configDef().names())) System.out.println("broker " + name);
        Class<?>[] classes = {
            SslConfigs.class, SaslConfigs.class, BrokerSecurityConfigs.class, StandardAuthorizer.class,
        };
        TreeSet<String> named = new TreeSet<>();
        for (Class<?> one : classes)
            for (Field field : one.getDeclaredFields())
                if (Modifier.isStatic(field.getModifiers()) && field.getType() == String.class) {
                    field.setAccessible(true);
                    String value = (String) field.get(null);
                    if (value != null && value.matches("[a-z]+(\\.[a-z]+)+")) named.add(value);
                }
        for (String name : named) System.out.println("named " + name);
    }
}
