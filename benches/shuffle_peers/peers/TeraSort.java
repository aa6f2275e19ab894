/*
 * Spark: TeraSort on RDDs, as Spark's own entries to the sort benchmark were written.
 *
 *     spark-submit --class TeraSort terasort.jar JOB
 *
 * Slices of the inputs are an RDD whose elements prefer the node that has them, and with
 * spark.locality.wait as long as a run they are read nowhere else. Keys are sampled from the
 * beginning of each slice, quantiles of them divide the records among partitions
 * (repartitionAndSortWithinPartitions), and each partition is written on the node that sorted it.
 * A record is one array of 100 bytes, compared by its first 10 as unsigned: as keys without values
 * they are shuffled in serialized form, without an object for each.
 */

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.nio.channels.Channels;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.Partitioner;
import org.apache.spark.SparkConf;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import scala.Tuple2;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag$;

public final class TeraSort {
    private static final int RECORD_BYTES = 100;
    private static final int KEY_BYTES = 10;
    private static final int BLOCK_RECORDS = 10_000;
    /** Of a slice. */
    private static final int SAMPLED = 1000;
    /** Slices, and partitions: a partition's records are objects, half as large again. */
    private static final int SLICES_IN_BUDGET = 16;
    private static final int PARTITIONS_IN_BUDGET = 16;

    private TeraSort() {}

    /** Records of one node's input. */
    static final class Slice implements Serializable {
        final String node;
        final String path;
        final long first;
        final long count;

        Slice(String node, String path, long first, long count) {
            this.node = node;
            this.path = path;
            this.first = first;
            this.count = count;
        }
    }

    /** Keys as the sort benchmark orders them. */
    static final class ByKey implements Comparator<byte[]>, Serializable {
        @Override
        public int compare(byte[] one, byte[] other) {
            return Arrays.compareUnsigned(one, 0, KEY_BYTES, other, 0, KEY_BYTES);
        }
    }

    /** Partitions between boundaries, which are keys in order. */
    static final class Ranges extends Partitioner {
        private final byte[][] boundaries;

        Ranges(byte[][] boundaries) {
            this.boundaries = boundaries;
        }

        @Override
        public int numPartitions() {
            return boundaries.length + 1;
        }

        @Override
        public int getPartition(Object key) {
            int place = Arrays.binarySearch(boundaries, (byte[]) key, new ByKey());
            return place < 0 ? -place - 1 : place;
        }
    }

    /** A slice's records, one array each. */
    static final class Records implements Iterator<byte[]> {
        private final byte[] block = new byte[BLOCK_RECORDS * RECORD_BYTES];
        private final DataInputStream input;
        private long left;
        private int at;
        private int filled;

        Records(Slice slice, long most) {
            String here = System.getenv("SHUFFLE_PEERS_NODE");
            if (!slice.node.equals(here)) { // It would bypass that node's throttle.
                throw new IllegalStateException(
                        "a slice of " + slice.node + " was to be read on " + here);
            }
            left = Math.min(slice.count, most);
            try {
                FileChannel file = FileChannel.open(Path.of(slice.path), StandardOpenOption.READ);
                file.position(slice.first * RECORD_BYTES);
                input = new DataInputStream(Channels.newInputStream(file));
                fill();
            } catch (IOException why) {
                throw new UncheckedIOException(why);
            }
        }

        @Override
        public boolean hasNext() {
            return at < filled;
        }

        @Override
        public byte[] next() {
            byte[] record = Arrays.copyOfRange(block, at, at + RECORD_BYTES);
            at += RECORD_BYTES;
            if (at == filled) {
                try {
                    fill();
                } catch (IOException why) {
                    throw new UncheckedIOException(why);
                }
            }
            return record;
        }

        private void fill() throws IOException {
            at = 0;
            filled = (int) Math.min(left, BLOCK_RECORDS) * RECORD_BYTES;
            left -= filled / RECORD_BYTES;
            input.readFully(block, 0, filled);
            if (filled == 0) {
                input.close();
            }
        }
    }

    public static void main(String[] arguments) throws IOException {
        JsonNode job = new ObjectMapper().readTree(Path.of(arguments[0]).toFile());
        long budget = job.get("budget_bytes").asLong();
        int slots = job.get("slots").asInt();
        long bytes = 0;
        List<Tuple2<Slice, Seq<String>>> placed = new ArrayList<>();
        for (JsonNode node : job.get("nodes")) {
            String name = node.get("name").asText();
            String path = node.get("input").asText();
            long records = Files.size(Path.of(path)) / RECORD_BYTES;
            bytes += records * RECORD_BYTES;
            long most = budget / SLICES_IN_BUDGET;
            long parts = Math.max(slots, (records * RECORD_BYTES + most - 1) / most);
            Seq<String> where = sequence(List.of(node.get("address").asText()));
            for (long part = 0; part < parts; part++) {
                long first = records * part / parts;
                long count = records * (part + 1) / parts - first;
                placed.add(new Tuple2<>(new Slice(name, path, first, count), where));
            }
        }
        long most = budget / PARTITIONS_IN_BUDGET;
        int partitions = (int) Math.max(slots * job.get("nodes").size(), (bytes + most - 1) / most);
        SparkConf conf = new SparkConf().setAppName("TeraSort");
        try (JavaSparkContext context = new JavaSparkContext(conf)) {
            JavaRDD<Slice> slices =
                    context.sc()
                            .makeRDD(sequence(placed), ClassTag$.MODULE$.<Slice>apply(Slice.class))
                            .toJavaRDD();
            Ranges ranges = new Ranges(boundaries(slices, partitions));
            slices.flatMap(slice -> new Records(slice, slice.count))
                    .mapToPair(record -> new Tuple2<byte[], Void>(record, null))
                    .repartitionAndSortWithinPartitions(ranges, new ByKey())
                    .foreachPartition(TeraSort::write);
        }
    }

    private static byte[][] boundaries(JavaRDD<Slice> slices, int partitions) {
        List<byte[]> keys =
                new ArrayList<>(
                        slices.flatMap(slice -> new Records(slice, SAMPLED))
                                .map(record -> Arrays.copyOf(record, KEY_BYTES))
                                .collect());
        keys.sort(new ByKey());
        byte[][] found = new byte[partitions - 1][];
        for (int place = 1; place < partitions; place++) {
            found[place - 1] = keys.get((int) ((long) keys.size() * place / partitions));
        }
        return found;
    }

    private static void write(Iterator<Tuple2<byte[], Void>> records) throws IOException {
        Path directory = Path.of(System.getenv("SHUFFLE_PEERS_OUTPUT"));
        String name = String.format("part-%05d", TaskContext.getPartitionId());
        Path hidden = directory.resolve("." + name);
        try (OutputStream file =
                new BufferedOutputStream(
                        Files.newOutputStream(hidden), BLOCK_RECORDS * RECORD_BYTES)) {
            while (records.hasNext()) {
                file.write(records.next()._1);
            }
        }
        Files.move(hidden, directory.resolve(name));
    }

    private static <T> Seq<T> sequence(List<T> values) {
        return CollectionConverters.asScala(values).toSeq();
    }
}
