/** Reports to the server of errors that the code of a Workspace threw. */
import type { ErrorReport } from '../protocol/messages.ts'
import { ERROR_CHARACTERS_MAX } from '../protocol/messages.ts'
import { inspect } from './logging.ts'
import { REPLACEMENTS } from './missing-globals.ts'
import { SCRIPT_NAME } from './workspace-script.ts'

const { stringify } = JSON
/** Characters of a stack before the frames of this realm are left out of it. */
const STACK_CHARACTERS_MAX = 8 * ERROR_CHARACTERS_MAX
const SCRIPT_FRAME = new RegExp(`^ *(at .*?${SCRIPT_NAME.replace('.', '\\.')}:)(\\d+)(.*)$`)
const UNKNOWN_NAME = /^(?:Can't find variable: (\w+)|(\w+) is not defined)$/

const READ_ONLY =
  'all calls share what is built in, with the names that an object inherits from it: give a ' +
  'name to the object itself by Object.defineProperty or a class'

function fixFor(message: string): string | undefined {
  if (message === 'Attempted to assign to readonly property.') return READ_ONLY
  if (message.includes("'crypto.subtle")) return 'import a library that is written in JavaScript'
  const name = UNKNOWN_NAME.exec(message)
  return REPLACEMENTS[name?.[1] ?? name?.[2] ?? '']
}

/** Adds to a message of the engine what to do instead. */
function withFix(message: string): string {
  const fix = fixFor(message)
  return fix === undefined ? message : `${message}: ${fix}`
}

/** The frames of the script, in its own lines: the wrapper is one line above it. */
function scriptFrames(stack: string): string {
  const lines = stack.split('\n')
  let frames = ''
  for (let i = 0; i < lines.length; i++) {
    const found = SCRIPT_FRAME.exec(lines[i]!)
    if (found === null) continue
    frames += `${frames === '' ? '' : '\n'}${found[1]}${Number(found[2]) - 1}${found[3]}`
  }
  return frames
}

/** Reads text of a thrown object, which runs code of the author that may throw again. */
function readText(read: () => unknown, otherwise: string, most = ERROR_CHARACTERS_MAX): string {
  try {
    const found = read()
    return typeof found === 'string' ? found.slice(0, most) : otherwise
  } catch {
    return otherwise
  }
}

/**
 * Returns the JSON text of an ErrorReport of anything thrown, with the stack of `located` and with
 * `before` in front of its message. It uses no method of an array and no iterator: the code that
 * threw may have changed them.
 */
export function report(thrown: unknown, located: unknown = thrown, before = ''): string {
  const name = readText(() => (thrown as ErrorReport).name, 'Error')
  const message = readText(() => {
    if (thrown instanceof Error) return thrown.message
    return `thrown: ${typeof thrown === 'object' ? inspect(thrown) : String(thrown)}`
  }, 'thrown')
  const stack = readText(() => (located as ErrorReport).stack, '', STACK_CHARACTERS_MAX)
  const frames = stringify(scriptFrames(stack).slice(0, ERROR_CHARACTERS_MAX))
  return `[${stringify(name)},${stringify(before + withFix(message))},${frames}]`
}
