/** `svc watch`: prints the result of a Query, and each change of it until it is interrupted. */
import { formatTimestamp } from '../../../value/plain.ts'
import type { Json } from '../../../value/strict-json.ts'
import { encodeTagged } from '../../../value/tagged.ts'
import { argument, type CommandSpec, type Context, command, flag } from '../../contexts.ts'
import { openRemote } from '../../roots/remotes.ts'
import { usage } from '../../usage.ts'
import { printableJson } from '../../visible-text.ts'
import { targetOf } from '../targets.ts'
import {
  ARGUMENTS_POSITIONAL,
  callerFrom,
  FUNCTION_OPTIONS,
  findFunction,
  printedResult,
  readArguments,
  toValues,
} from './function-calls.ts'
import type { State, WatchedCall } from './watched-states.ts'

/** States that wait for a slow reader of the output; then the oldest is left out. */
const WAITING_MAX = 16

export const watchCommand: CommandSpec = command({
  name: 'watch',
  summary: 'Print the result of a Query and each change of it',
  details: [
    'Arguments and results are plain JSON, as for `svc call`. With --json each state is one line.',
    'The key needs the scopes realtime and query. The revision counts the printed states; a state',
    'after a lost connection is printed if it differs. A reader that is slow misses states, never',
    'the newest one. It ends when it is interrupted, with exit code 130.',
  ],
  positionals: [
    argument('FUNCTION', 'Name of a Query, such as messages.list'),
    ARGUMENTS_POSITIONAL,
  ],
  options: {
    ...FUNCTION_OPTIONS,
    tagged: flag('Arguments and results are tagged JSON, which keeps every type exact'),
  },
  examples: [
    'svc watch messages.list \'{"channel":"channels_..."}\' --dev',
    'svc watch messages.list \'{"channel":"channels_..."}\' \\',
    '  --url https://app.example.com --key-env APP_KEY --target channel:production',
  ],
  async run(context, options, [name = '', given]) {
    const json = await readArguments(context, watchCommand, given, options['args-file'])
    const remote = await openRemote(context, options)
    const { keyFor, ...caller } = callerFrom(context, watchCommand, options, remote)
    const target = targetOf(remote, options.target, watchCommand)
    const declared = await findFunction(context, remote, target, name)
    const { kind } = declared
    if (kind !== 'query') {
      const found = kind === 'mutation' ? 'a Mutation' : 'an Action'
      const what = `${name} is ${found}, and only a Query can be watched.`
      throw usage(`${what} Call it with \`svc call\`.`, watchCommand)
    }
    const values = toValues(json, options.tagged ? null : (declared.arguments as Json))
    const call = { ...caller, key: keyFor(declared), target, name, errors: { ...declared.errors } }
    const tagged = JSON.parse(encodeTagged(values)) as Json
    await printStates(context, { ...call, arguments: tagged }, options.tagged)
  },
})

async function printStates(context: Context, call: WatchedCall, isTagged: boolean): Promise<never> {
  const { output, environment } = context
  const { followStates } = await import('./watched-states.ts')
  const printer = new StatePrinter(context, isTagged)
  await output.note(`Watching ${call.name}; interrupt to end.`)
  const followed = followStates(context, call, {
    onState: (state) => printer.add(state, environment.system.nowMicros()),
    onOutage: (reason) => {
      const text = reason === null ? 'Connected again.' : `Not connected (${reason}); trying again.`
      void output.warn(text)
    },
  })
  try {
    return await followed
  } finally {
    await printer.printed
  }
}

class StatePrinter {
  readonly #context: Context
  readonly #isTagged: boolean
  readonly #waiting: { state: State; atMicros: bigint }[] = []
  #revision = 0
  #last: string | null = null
  #lines: ReadonlySet<string> = new Set()
  #isPrinting = false
  #printing: Promise<void> = Promise.resolve()

  constructor(context: Context, isTagged: boolean) {
    this.#context = context
    this.#isTagged = isTagged
  }

  /** Resolves when what was added is printed, or has failed. */
  get printed(): Promise<unknown> {
    return this.#printing.catch(() => undefined)
  }

  /** Prints the state after those that were added before it. */
  add(state: State, atMicros: bigint): Promise<void> {
    this.#waiting.push({ state, atMicros })
    if (this.#waiting.length > WAITING_MAX) this.#waiting.shift()
    if (!this.#isPrinting) this.#printing = this.#printAll()
    return this.#printing
  }

  async #printAll(): Promise<void> {
    this.#isPrinting = true
    try {
      for (let next = this.#waiting.shift(); next; next = this.#waiting.shift()) {
        const text = JSON.stringify(next.state.result)
        if (text === this.#last) continue
        this.#last = text
        await this.#print(next.state, next.atMicros)
      }
    } finally {
      this.#isPrinting = false
    }
  }

  async #print(state: State, atMicros: bigint): Promise<void> {
    const { output } = this.#context
    const { releaseId } = state
    const result = printedResult(state.result as Json, this.#isTagged)
    const revision = String(++this.#revision)
    const snapshotSequence = state.sequence === null ? null : String(state.sequence)
    const shown = { version: 1, atMicros: String(atMicros), revision, snapshotSequence, releaseId }
    const lines = printableJson(result).split('\n')
    // Lines that the state before did not have are bold, except in the first state.
    const isNew = (line: string): boolean => this.#revision > 1 && !this.#lines.has(bare(line))
    const body = lines.map((line) => (isNew(line) ? output.bold(line) : line))
    this.#lines = new Set(lines.map(bare))
    const commit = snapshotSequence === null ? '' : `  commit ${snapshotSequence}`
    const head = `${formatTimestamp(atMicros)}  revision ${revision}${commit}  ${releaseId}`
    const human = [output.styled('dim', head), ...body].join('\n')
    await output.line({ ...shown, result }, human)
  }
}

/** Removes the trailing comma, which says only that another element follows. */
function bare(line: string): string {
  return line.replace(/,$/, '')
}
