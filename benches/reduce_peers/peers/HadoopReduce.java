/*
 * Hadoop's MapReduce in one JVM (the local runner): k-means as pairs of a centre's number and a point.
 *
 *     java -cp ... HadoopReduce TASK combiner|no-combiner
 *
 * Objects are read by s3a as records of a length. A map finds the nearest centre of a point and gives
 * the point, 1 and its squared distance; the combiner, if there is one, and the reducers add up. As
 * many maps and reduces run at once as there are workers.
 */

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.util.Properties;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.io.IntWritable;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.SequenceFile;
import org.apache.hadoop.io.Writable;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.Mapper;
import org.apache.hadoop.mapreduce.Reducer;
import org.apache.hadoop.mapreduce.lib.input.FixedLengthInputFormat;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;
import org.apache.hadoop.mapreduce.lib.output.SequenceFileOutputFormat;

public final class HadoopReduce {
    private static final String TASK = "reduce.task";
    private static final String SORT_MB = "256";

    private HadoopReduce() {}

    /** Sums of points, how many they are, and how far from their centre: one array. */
    public static final class Sums implements Writable {
        double[] values = {};

        void add(Sums other) {
            if (values.length == 0) {
                values = new double[other.values.length];
            }
            for (int at = 0; at < values.length; at++) {
                values[at] += other.values[at];
            }
        }

        @Override
        public void write(DataOutput out) throws IOException {
            out.writeInt(values.length);
            for (double value : values) {
                out.writeDouble(value);
            }
        }

        @Override
        public void readFields(DataInput in) throws IOException {
            int length = in.readInt();
            if (values.length != length) {
                values = new double[length];
            }
            for (int at = 0; at < length; at++) {
                values[at] = in.readDouble();
            }
        }
    }

    /** A point goes to the nearest centre. */
    public static final class Nearest extends Mapper<LongWritable, BytesWritable, IntWritable, Sums> {
        private final IntWritable number = new IntWritable();
        private final Sums sums = new Sums();
        private double[][] centres;

        @Override
        protected void setup(Context context) throws IOException {
            centres = Peer.centres(Peer.task(context.getConfiguration().get(TASK)));
        }

        @Override
        protected void map(LongWritable place, BytesWritable row, Context context)
                throws IOException, InterruptedException {
            double[] point = Peer.point(row.getBytes(), row.getLength());
            double least = Double.POSITIVE_INFINITY;
            for (int k = 0; k < centres.length; k++) {
                double distance = 0;
                for (int at = 0; at < point.length; at++) {
                    double apart = point[at] - centres[k][at];
                    distance += apart * apart;
                }
                if (distance < least) {
                    least = distance;
                    number.set(k);
                }
            }
            sums.values = java.util.Arrays.copyOf(point, point.length + 2);
            sums.values[point.length] = 1;
            sums.values[point.length + 1] = least;
            context.write(number, sums);
        }
    }

    /** Combiner and reducer. */
    public static final class Add extends Reducer<IntWritable, Sums, IntWritable, Sums> {
        @Override
        protected void reduce(IntWritable number, Iterable<Sums> all, Context context)
                throws IOException, InterruptedException {
            Sums whole = new Sums();
            for (Sums each : all) {
                whole.add(each);
            }
            context.write(number, whole);
        }
    }

    public static void main(String[] arguments) throws Exception {
        Properties task = Peer.task(arguments[0]);
        Configuration known = new Configuration();
        String scratch = task.getProperty("scratch");
        String workers = task.getProperty("workers");
        known.set(TASK, arguments[0]);
        known.set("fs.defaultFS", "file:///");
        known.set("hadoop.tmp.dir", scratch);
        known.set("mapreduce.framework.name", "local");
        known.set("mapreduce.local.map.tasks.maximum", workers);
        known.set("mapreduce.local.reduce.tasks.maximum", workers);
        known.set("mapreduce.task.io.sort.mb", SORT_MB);
        known.set("fs.s3a.endpoint", task.getProperty("endpoint"));
        FixedLengthInputFormat.setRecordLength(
                known, Peer.number(task, "columns") * Double.BYTES);
        boolean combines = arguments[1].equals("combiner");
        Peer.serve(task, () -> once(known, task, new Path(scratch, "out"), combines));
    }

    private static double[] once(
            Configuration known, Properties task, Path out, boolean combines) throws Exception {
        FileSystem files = out.getFileSystem(known);
        files.delete(out, true);
        Job job = Job.getInstance(known, "k-means");
        job.setJarByClass(HadoopReduce.class);
        job.setInputFormatClass(FixedLengthInputFormat.class);
        FixedLengthInputFormat.addInputPath(job, new Path(Peer.points(task)));
        job.setMapperClass(Nearest.class);
        if (combines) {
            job.setCombinerClass(Add.class);
        }
        job.setReducerClass(Add.class);
        job.setNumReduceTasks(Peer.number(task, "workers"));
        job.setOutputKeyClass(IntWritable.class);
        job.setOutputValueClass(Sums.class);
        job.setOutputFormatClass(SequenceFileOutputFormat.class);
        FileOutputFormat.setOutputPath(job, out);
        if (!job.waitForCompletion(false)) {
            throw new IOException("the job failed");
        }
        return result(known, files, out, Peer.centres(task));
    }

    /** The next centres, how many points the old ones have, the inertia. */
    private static double[] result(
            Configuration known, FileSystem files, Path out, double[][] centres)
            throws IOException {
        int k = centres.length;
        int columns = centres[0].length;
        double[] result = new double[k * columns + k + 1];
        for (int number = 0; number < k; number++) {
            System.arraycopy(centres[number], 0, result, number * columns, columns);
        }
        IntWritable number = new IntWritable();
        Sums sums = new Sums();
        for (FileStatus part : files.globStatus(new Path(out, "part-*"))) {
            try (SequenceFile.Reader reader =
                    new SequenceFile.Reader(known, SequenceFile.Reader.file(part.getPath()))) {
                while (reader.next(number, sums)) {
                    double count = sums.values[columns];
                    for (int at = 0; at < columns; at++) {
                        result[number.get() * columns + at] = sums.values[at] / count;
                    }
                    result[k * columns + number.get()] = count;
                    result[k * columns + k] += sums.values[columns + 1];
                }
            }
        }
        return result;
    }
}
