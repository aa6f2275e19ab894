/*
 * What a peer is asked to do, and how, as task.py says it: the main of every peer that is Java.
 */

import java.io.BufferedReader;
import java.io.FileReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.Reader;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.DoubleBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Properties;

final class Peer {
    /** Does the job once. */
    interface Once {
        double[] get() throws Exception;
    }

    private Peer() {}

    /** Reads a task. */
    static Properties task(String path) throws IOException {
        Properties task = new Properties();
        try (Reader reader = new FileReader(path)) {
            task.load(reader);
        }
        return task;
    }

    static int number(Properties task, String name) {
        return Integer.parseInt(task.getProperty(name));
    }

    /** Where the points are. */
    static String points(Properties task) {
        return "s3a://" + task.getProperty("bucket") + "/" + task.getProperty("points") + "/*.bin";
    }

    /** The first centres. */
    static double[][] centres(Properties task) throws IOException {
        DoubleBuffer from =
                ByteBuffer.wrap(Files.readAllBytes(Path.of(task.getProperty("centres"))))
                        .order(ByteOrder.LITTLE_ENDIAN)
                        .asDoubleBuffer();
        double[][] centres = new double[number(task, "k")][number(task, "columns")];
        for (double[] centre : centres) {
            from.get(centre);
        }
        return centres;
    }

    /** A point of the bytes that it is stored as. */
    static double[] point(byte[] bytes, int length) {
        double[] point = new double[length / Double.BYTES];
        ByteBuffer.wrap(bytes, 0, length).order(ByteOrder.LITTLE_ENDIAN).asDoubleBuffer().get(point);
        return point;
    }

    /** Does the job for each line of standard input. */
    static void serve(Properties task, Once once) throws Exception {
        System.out.println("#ready");
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        while (lines.readLine() != null) {
            long began = System.nanoTime();
            double[] result = once.get();
            double seconds = (System.nanoTime() - began) / 1e9;
            ByteBuffer bytes =
                    ByteBuffer.allocate(result.length * Double.BYTES).order(ByteOrder.LITTLE_ENDIAN);
            bytes.asDoubleBuffer().put(result);
            Files.write(Path.of(task.getProperty("result")), bytes.array());
            System.out.println("#done " + seconds);
        }
    }
}
