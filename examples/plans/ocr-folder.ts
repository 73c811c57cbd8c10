/** A task for plans: reads the images of a folder and writes a text file beside each. */
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join, parse } from "node:path";
import { task } from "jobtable";
import { z } from "zod";
import { recognize } from "../ocr/engine.js";

const IMAGE = /\.(png|jpe?g)$/i;

export default task({
  description: "Writes the text of each image of a folder into a file beside it",
  input: z.object({ folder: z.string().min(1).describe("Absolute path of the folder") }),
  output: z.object({ read: z.number(), files: z.array(z.string()) }),
  async run({ folder }, { signal, progress }) {
    const images = (await readdir(folder)).filter((name) => IMAGE.test(name)).sort();
    const files: string[] = [];
    for (const image of images) {
      progress({ image, read: files.length, of: images.length });
      const { text } = await recognize(
        await readFile(join(folder, image)),
        signal,
        () => undefined,
      );
      const file = `${parse(image).name}.txt`;
      await writeFile(join(folder, file), text);
      files.push(file);
    }
    return { read: files.length, files };
  },
});
