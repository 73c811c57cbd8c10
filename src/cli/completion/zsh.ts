/** The completion for zsh: a file `_jobtable` in a folder of $fpath, or `source <(jobtable completion zsh)`. */
import type { Completions, Flag, Place } from "./model.js";

export function zshCompletion({ program, places, valued, choices }: Completions): string {
  const name = `_${program}`;
  const known = places.filter(({ path }) => path !== "").map(({ path }) => quote(path));
  return `#compdef ${program}
${name}() {
  local place="" word prev=\${words[CURRENT-1]}
  local -i i skip=0
  local -a texts flags
  for ((i = 2; i < CURRENT; i++)); do
    word=\${words[i]}
    if ((skip)); then skip=0; continue; fi
    case $word in
      ${valued.join("|")}) skip=1 ;;
      -*) ;;
      *)
        case "\${place:+$place }$word" in
          ${known.join("|")}) place="\${place:+$place }$word" ;;
        esac ;;
    esac
  done
  case $prev in
${choices.map(({ names, values }) => `    ${names.join("|")}) compadd -- ${values.map(quote).join(" ")}; return ;;`).join("\n")}
    ${valued.join("|")}) _files; return ;;
  esac
  case $place in
${places.map(caseOf).join("\n")}
  esac
  if [[ \${words[CURRENT]} == -* ]]; then _describe -o option flags
  elif (($#texts)); then _describe command texts
  else _files; fi
}
if [[ \${funcstack[1]} == ${name} ]]; then ${name} "$@"; else compdef ${name} ${program}; fi`;
}

function caseOf({ path, words, flags }: Place): string {
  const texts = words.map(({ text, summary }) => described(text, summary));
  return `    ${quote(path)})
      texts=(${texts.join(" ")})
      flags=(${flags.flatMap(flagWords).join("\n        ")}) ;;`;
}

function flagWords({ names, summary }: Flag): string[] {
  return names.map((name) => described(name, summary));
}

/** A colon parts the word from what is said about it. */
function described(word: string, summary: string): string {
  return quote(`${word}:${summary.replaceAll(":", "\\:")}`);
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
