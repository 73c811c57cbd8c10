/** The completion for fish: `jobtable completion fish > ~/.config/fish/completions/jobtable.fish`. */
import type { Completions, Flag, Place } from "./model.js";

export function fishCompletion({ program, places, valued }: Completions): string {
  const at = `__${program}_at`;
  const known = places.filter(({ path }) => path !== "").map(({ path }) => quote(path));
  return `# fish completion for ${program}
function ${at}
    set -l place
    set -l skip 0
    for word in (commandline -opc)[2..-1]
        if test $skip = 1
            set skip 0
            continue
        end
        switch $word
            case ${valued.join(" ")}
                set skip 1
            case '-*'
            case '*'
                set -l next (string join ' ' $place $word)
                contains -- $next ${known.join(" ")}; and set place $next
        end
    end
    test "$place" = "$argv[1]"
end
${places.flatMap((place) => linesOf(program, at, place)).join("\n")}`;
}

function linesOf(program: string, at: string, { path, words, flags }: Place): string[] {
  const lead = `complete -c ${program} -n ${quote(`${at} ${quote(path)}`)}`;
  return [
    ...words.map(({ text, summary }) => `${lead} -f -a ${quote(text)} -d ${quote(summary)}`),
    ...flags.map((flag) => `${lead} ${flagParts(flag)}`),
  ];
}

function flagParts({ names, summary, takesValue, values }: Flag): string {
  return [
    ...names.map((name) => (name.startsWith("--") ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`)),
    ...(values.length > 0 ? [`-x -a ${quote(values.join(" "))}`] : takesValue ? ["-r"] : []),
    `-d ${quote(summary)}`,
  ].join(" ");
}

function quote(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}
