// TeraValidate again and again in one process: its start is most of what one takes.
// Each line of the input is "-Dkey=value ... DIRECTORY REPORT", apart by tabs; each is answered by
// a line with its exit code.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.examples.terasort.TeraValidate;
import org.apache.hadoop.util.ToolRunner;

public class Judge {
    public static void main(String[] arguments) throws Exception {
        var answers = System.out;
        System.setOut(System.err); // Hadoop says there how fast it is.
        var asked = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = asked.readLine()) != null; ) {
            int code = 2;
            try {
                code = ToolRunner.run(new Configuration(), new TeraValidate(), line.split("\t"));
            } catch (Exception why) {
                why.printStackTrace();
            }
            answers.println(code);
            answers.flush();
        }
    }
}
