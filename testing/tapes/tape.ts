/**
 * Recordings of commands in a terminal, in the format asciicast 2. Their output is real; the pace
 * is that of a reader, and what differs from run to run has one form, so that a recording is
 * compared with the next one.
 */
import { spawnSync } from 'node:child_process'

/** Stands in front of the output of each command. */
export const MARK = '\u001e'
const WIDTH = 100
const HEIGHT = 24
const WORD_SECONDS = 0.09
const COMMENT_WORD_SECONDS = 0.05
const ENTER_SECONDS = 0.35
const OUTPUT_SECONDS = 0.25
const LINE_SECONDS = 0.06

/** Splits a script into its commands: the shortest runs of lines that are whole for the shell. */
export function commandsOf(script: string, shell = '/bin/sh'): string[] {
  const commands: string[] = []
  let lines: string[] = []
  for (const line of script.split('\n')) {
    if (lines.length === 0 && line.trim() === '') continue
    lines.push(line)
    const text = lines.join('\n')
    if (line.endsWith('\\') || spawnSync(shell, ['-n'], { input: text }).status !== 0) continue
    commands.push(text)
    lines = []
  }
  if (lines.length > 0) throw new Error(`the script ends inside a command: ${lines.join('\n')}`)
  return commands
}

/** Returns a script whose output has MARK in front of the output of each command. */
export function markedScript(commands: readonly string[]): string {
  return ['exec 2>&1', ...commands.flatMap((each) => [`printf '\\036'`, each])].join('\n')
}

/** Returns the recording of commands, from the output of the marked script. */
export function tapeOf(commands: readonly string[], output: string): string {
  const [, ...outputs] = normalised(output).split(MARK)
  if (outputs.length !== commands.length) throw new Error('a command left no mark')
  const lines = [JSON.stringify({ version: 2, width: WIDTH, height: HEIGHT })]
  let seconds = 0
  const write = (text: string, pause: number): void => {
    seconds += pause
    lines.push(JSON.stringify([Number(seconds.toFixed(2)), 'o', text.replaceAll('\n', '\r\n')]))
  }
  for (const [i, command] of commands.entries()) {
    const isComment = command.startsWith('#')
    if (isComment && i > 0) write('\n', ENTER_SECONDS)
    write('$ ', OUTPUT_SECONDS)
    const pause = isComment ? COMMENT_WORD_SECONDS : WORD_SECONDS
    for (const word of command.match(/\S+\s*/g) ?? []) write(word.replaceAll('\n', '\n> '), pause)
    write('\n', ENTER_SECONDS)
    for (const line of outputs[i]!.split('\n').filter(
      (each, at, all) => at < all.length - 1 || each,
    )) {
      write(`${line}\n`, LINE_SECONDS)
    }
  }
  return `${lines.join('\n')}\n`
}

/** Returns the text of a recording without its pace and its numbers, which versions change. */
export function shownText(tape: string): string {
  const [, ...events] = tape.trim().split('\n')
  const texts = events.map((event) => (JSON.parse(event) as [number, string, string])[2])
  return texts.join('').replaceAll('\r', '').replace(/\d+/g, '0')
}

/** Gives one form to what differs from run to run. */
export function normalised(output: string): string {
  const ids = new Map<string, string>()
  const idOf = (id: string): string => {
    const known = ids.get(id) ?? `01M84217E8DMK01HV0P3A4N${String(ids.size).padStart(3, '0')}`
    ids.set(id, known)
    return known
  }
  return output
    .replace(/(?<=\b[a-z]{2,8}_)[0-9A-HJKMNP-TV-Z]{26}\b/g, idOf)
    .replace(
      /\b[0-9a-f]{64}\b/g,
      'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
    )
    .replace(/\b\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?Z/g, '2026-11-27T09:00:00Z')
    .replace(/\b\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}(?:\.\d+)?/g, '2026-11-27 09:00:00')
    .replace(/\b\d{13,16}n?\b/g, '1795770000000000')
    .replace(/\b\d+(?:\.\d+)? (?:ms|s)\b/g, '0.2 s')
}
