/** A question on the terminal of the process, also where standard input is a script. */
import { closeSync, openSync, readSync, writeSync } from 'node:fs'

const ANSWER_BYTES_MAX = 256

/** Returns whether the answer is yes, or null without a terminal. */
export function askOnTerminal(question: string, path = '/dev/tty'): boolean | null {
  let terminal: number
  try {
    terminal = openSync(path, 'r+')
  } catch {
    return null
  }
  try {
    writeSync(terminal, question)
    // A terminal gives one line at a time; no bytes are its end.
    const answer = Buffer.alloc(ANSWER_BYTES_MAX)
    const length = readSync(terminal, answer, 0, answer.length, null)
    return /^\s*y(?:es)?\s*$/i.test(answer.toString('utf8', 0, length))
  } finally {
    closeSync(terminal)
  }
}
