/** The completion script for fish 3.0 and newer. */
import { type Branch, branches, type CompletedProgram, lookupsOf, wordsOf } from './programs.ts'

export function fishScript(program: CompletedProgram): string {
  const lookups = lookupsOf(program)
  const prefix = `__${program.name.replaceAll('-', '_')}`
  const pairs = (rows: readonly (readonly [string, string])[]): string =>
    rows.map(([word, summary]) => `${quoted(word)} ${quoted(summary)}`).join(' ')
  const words = branches(lookups.words, (rows) => `set entries ${pairs(rows)}`)
  const options = branches(lookups.options, (rows) => {
    const repeated = rows.filter(({ repeats }) => repeats).map(({ name }) => quoted(name))
    const described = pairs(rows.map(({ name, summary }) => [name, summary]))
    return `set entries ${described}; set repeated ${repeated.join(' ')}`.trimEnd()
  })
  const values = branches(lookups.values, (value) => {
    const choices = wordsOf(value).map(quoted).join(' ')
    return `set kind ${value.kind}${choices === '' ? '' : `; set choices ${choices}`}`
  })
  const help = program.hasHelpWord ? HELP_WORD : ''
  return [
    `# Completion of ${program.name} for fish. \`${program.name} completion fish\` prints it.`,
    switchFunction(`${prefix}_words`, words),
    switchFunction(`${prefix}_options`, options),
    switchFunction(`${prefix}_value`, values),
    `${READING}${help}${COMPLETING}`.replaceAll('@@', prefix),
    `complete -c ${program.name} -e`,
    `complete -c ${program.name} -f -a '(${prefix}_complete)'`,
    '',
  ].join('\n')
}

/** Quotes a word, so that fish expands nothing in it. */
function quoted(word: string): string {
  return `'${word.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
}

/** Formats a function that runs the branch of its argument on the variables of its caller. */
function switchFunction(name: string, cases: readonly Branch[]): string {
  const lines = cases.map(
    ({ keys, text }) => `    case ${keys.map(quoted).join(' ')}\n      ${text}`,
  )
  const head = [`function ${name} --no-scope-shadowing`, '  switch "$argv[1]"']
  return [...head, ...lines, '  end', 'end'].join('\n')
}

/** Finds the command and what its next word is. Entries are words, each before its summary. */
const READING = `function @@_complete
  set -l typed (commandline -opc)
  set -l cur (commandline -ct)
  set -l node ''
  set -l expect ''
  set -l literal ''
  set -l help ''
  set -l kind ''
  set -l lead ''
  set -l position 0
  set -l entries
  set -l choices
  set -l given
  set -l repeated
  for word in $typed[2..-1]
    if test -n "$expect"
      set expect ''
    else if test -n "$literal"
      set position (math $position + 1)
    else if test "$word" = --
      set literal 1
    else if string match -q -- '--*=*' "$word"
      set given $given (string split -m 1 = -- "$word")[1]
    else if string match -q -r -- '^-.' "$word"
      set given $given "$word"
      set kind ''
      @@_value "$node $word"
      test -n "$kind"; and set expect "$word"
`

const HELP_WORD = `    else if test -z "$node$help" -a $position = 0 -a "$word" = help
      set help 1
`

const COMPLETING = `    else
      set entries
      test $position = 0; and @@_words "$node"
      set -l place (contains -i -- "$word" $entries)
      # A summary may be equal to a word; words have odd places.
      if test -n "$place"; and test (math "$place % 2") = 1
        set node (string trim -- "$node $word")
      else
        set position (math $position + 1)
      end
    end
  end
  set entries
  set choices
  set kind ''
  if test -n "$expect"
    @@_value "$node $expect"
  else if test -z "$literal"; and string match -q -- '--*=*' "$cur"
    set -l parts (string split -m 1 = -- "$cur")
    @@_value "$node $parts[1]"
    set lead "$parts[1]="
    set cur "$parts[2]"
  else if test -z "$literal"; and string match -q -- '-*' "$cur"
    set kind options
  else
    test $position = 0 -a -z "$literal"; and @@_words "$node"
    if test (count $entries) -gt 0
      set kind commands
    else if test -z "$help"
      @@_value "$node #$position"
    end
  end
  switch "$kind"
    case options
      @@_options "$node"
      for i in (seq 1 2 (count $entries))
        if not contains -- $entries[$i] $given; or contains -- $entries[$i] $repeated
          printf '%s\\t%s\\n' $entries[$i] $entries[(math $i + 1)]
        end
      end
    case commands
      printf '%s\\t%s\\n' $entries
    case words
      printf "%s\\n" $lead$choices
    case list
      set -l before (string match -r -- '^.*,' "$cur")
      printf "%s\\n" "$lead$before"$choices
    case file
      for path in (__fish_complete_path "$cur")
        printf "%s\\n" "$lead$path"
      end
    case directory
      for path in (__fish_complete_directories "$cur")
        printf "%s\\n" "$lead$path"
      end
  end
end`
