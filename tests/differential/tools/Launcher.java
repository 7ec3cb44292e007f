import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

import org.apache.kafka.common.utils.Exit;

/**
 * Runs main methods one after another in one JVM: a start costs more than most tools.
 *
 * A command comes in as a count and that many strings (standard input, class, arguments), an answer
 * goes out as exit code, standard output and standard error; integers are big endian, strings UTF-8
 * with their length before them. Ends at the end of its input.
 */
public class Launcher {
    /** What a tool wrote before it exited; what it writes afterwards is nobody's. */
    private static final class Capture extends OutputStream {
        private ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        private boolean open = true;

        @Override
        public synchronized void write(int b) {
            if (open) bytes.write(b);
        }

        @Override
        public synchronized void write(byte[] from, int offset, int length) {
            if (open) bytes.write(from, offset, length);
        }

        synchronized void begin() {
            bytes = new ByteArrayOutputStream();
            open = true;
        }

        synchronized void close(boolean stay) {
            open = stay;
        }

        synchronized byte[] taken() {
            open = false;
            return bytes.toByteArray();
        }
    }

    private static final class Exited extends Error {
        Exited() {
            super("exit", null, false, false);
        }
    }

    private static final Capture OUT = new Capture();
    private static final Capture ERR = new Capture();
    private static final List<Runnable> HOOKS = new ArrayList<>();
    private static Integer code;

    /** The first exit counts: a tool may catch what ends it here and exit again. */
    private static void exited(int status) {
        if (code == null) {
            code = status;
            System.out.flush();
            System.err.flush();
            OUT.close(false);
            ERR.close(false);
        }
        throw new Exited();
    }

    private static void run(String[] words) throws Exception {
        code = null;
        System.setIn(new ByteArrayInputStream(words[0].getBytes(StandardCharsets.UTF_8)));
        String[] arguments = java.util.Arrays.copyOfRange(words, 2, words.length);
        OUT.begin();
        ERR.begin();
        try {
            Class.forName(words[1]).getMethod("main", String[].class)
                .invoke(null, (Object) arguments);
        } catch (InvocationTargetException thrown) {
            if (!(thrown.getCause() instanceof Exited) && code == null) {
                thrown.getCause().printStackTrace();
                code = 1;
            }
        }
        if (code == null) code = 0;
        for (Runnable hook : HOOKS) hook.run();
        HOOKS.clear();
        System.out.flush();
        System.err.flush();
    }

    private static String text(DataInputStream in) throws IOException {
        return new String(in.readNBytes(in.readInt()), StandardCharsets.UTF_8);
    }

    private static void blob(DataOutputStream out, byte[] bytes) throws IOException {
        out.writeInt(bytes.length);
        out.write(bytes);
    }

    public static void main(String[] none) throws Exception {
        InputStream stdin = new FileInputStream(FileDescriptor.in);
        DataInputStream in = new DataInputStream(stdin);
        DataOutputStream out = new DataOutputStream(new FileOutputStream(FileDescriptor.out));
        System.setOut(new PrintStream(OUT, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(ERR, true, StandardCharsets.UTF_8));
        Exit.setExitProcedure((status, message) -> exited(status));
        Exit.setHaltProcedure((status, message) -> exited(status));
        Exit.setShutdownHookAdder((name, hook) -> HOOKS.add(hook));
        while (true) {
            int count;
            try {
                count = in.readInt();
            } catch (EOFException end) {
                Runtime.getRuntime().halt(0);
                return;
            }
            String[] words = new String[count];
            for (int i = 0; i < count; i++) words[i] = text(in);
            run(words);
            ByteArrayOutputStream answer = new ByteArrayOutputStream();
            DataOutputStream frame = new DataOutputStream(answer);
            frame.writeInt(code);
            blob(frame, OUT.taken());
            blob(frame, ERR.taken());
            out.write(answer.toByteArray());
            out.flush();
        }
    }
}
