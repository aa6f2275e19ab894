/*
 * Spark's MLlib, in Java: its KMeans (one iteration, from given centres) and RowMatrix's covariance.
 *
 *     spark-submit --class MLlib peers.jar TASK
 *
 * Rows are read by s3a as records of a length. The RDD API is taken as it alone takes centres to
 * begin with, so that what comes out can be checked; the DataFrame API's KMeans is the same code. It
 * keeps points in memory for its iterations, as it sees fit. Of means it gives none with a covariance.
 */

import java.util.Arrays;
import java.util.Properties;
import java.util.stream.DoubleStream;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.mllib.clustering.KMeans;
import org.apache.spark.mllib.clustering.KMeansModel;
import org.apache.spark.mllib.linalg.Matrix;
import org.apache.spark.mllib.linalg.Vector;
import org.apache.spark.mllib.linalg.Vectors;
import org.apache.spark.mllib.linalg.distributed.RowMatrix;

public final class MLlib {
    private MLlib() {}

    public static void main(String[] arguments) throws Exception {
        Properties task = Peer.task(arguments[0]);
        SparkConf known =
                new SparkConf()
                        .setAppName("reduce_peers")
                        .setMaster("local[" + task.getProperty("workers") + "]")
                        .set("spark.local.dir", task.getProperty("scratch"))
                        .set("spark.hadoop.fs.s3a.endpoint", task.getProperty("endpoint"));
        try (JavaSparkContext spark = new JavaSparkContext(known)) {
            Peer.serve(task, () -> once(spark, task));
        }
    }

    private static double[] once(JavaSparkContext spark, Properties task) throws Exception {
        int length = Peer.number(task, "columns") * Double.BYTES;
        JavaRDD<Vector> points =
                spark.binaryRecords(Peer.points(task), length)
                        .map(bytes -> Vectors.dense(Peer.point(bytes, bytes.length)));
        return task.getProperty("job").equals("kmeans")
                ? kmeans(points, Peer.centres(task))
                : covariance(points, Peer.number(task, "columns"));
    }

    private static double[] kmeans(JavaRDD<Vector> points, double[][] centres) {
        Vector[] from = Arrays.stream(centres).map(Vectors::dense).toArray(Vector[]::new);
        KMeansModel found =
                new KMeans()
                        .setK(centres.length)
                        .setMaxIterations(1)
                        .setInitialModel(new KMeansModel(from))
                        .run(points.rdd());
        DoubleStream moved =
                Arrays.stream(found.clusterCenters()).flatMapToDouble(v -> Arrays.stream(v.toArray()));
        // It does not return the number of points of each centre.
        DoubleStream counts = DoubleStream.generate(() -> Double.NaN).limit(centres.length);
        DoubleStream inertia = DoubleStream.of(found.trainingCost());
        return DoubleStream.concat(DoubleStream.concat(moved, counts), inertia).toArray();
    }

    private static double[] covariance(JavaRDD<Vector> points, int columns) {
        Matrix found = new RowMatrix(points.rdd()).computeCovariance();
        DoubleStream mean = DoubleStream.generate(() -> Double.NaN).limit(columns);
        return DoubleStream.concat(mean, Arrays.stream(found.toArray())).toArray();
    }
}
