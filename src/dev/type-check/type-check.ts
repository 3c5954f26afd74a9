/** Checks the types of a Workspace in a process of its own. */
import { Fault } from '../../errors/fault.ts'
import { ownCommand } from '../../runner/command.ts'
import { RUNNER_ENVIRONMENT } from '../../runner/sandbox/process-environment.ts'
import type { WorkspaceDescription } from '../../value/manifest.ts'
import { SCHEMA_FILE, type WorkspaceModule } from '../workspace/workspace-files.ts'
import {
  type CheckedFunction,
  TYPE_CHECK_ARGUMENT,
  type TypeCheckReply,
  type TypeCheckResult,
} from './messages.ts'

export type { TypeCheckResult } from './messages.ts'

/** A built Workspace whose `_generated` is current. */
export interface TypeCheckInput {
  readonly modules: readonly WorkspaceModule[]
  readonly description: WorkspaceDescription
}

export interface TypeChecker {
  /**
   * Checks the current files. Checks run one after the other; a later one checks only the changes.
   * Throws CLIENT_FAILED if the compiler cannot run.
   */
  check(input: TypeCheckInput): Promise<TypeCheckResult>
  /** Ends the process. A check in progress is rejected. */
  close(): void
}

/** Starts the process, which loads its compiler before the first check. */
export type StartTypeChecker = (directory: string) => TypeChecker

export const startTypeChecker: StartTypeChecker = (directory) => new CheckerProcess(directory)

class CheckerProcess implements TypeChecker {
  readonly #child: Bun.Subprocess<'pipe', 'pipe', 'pipe'>
  readonly #lines: AsyncIterator<string>
  #last: Promise<unknown> = Promise.resolve()

  constructor(directory: string) {
    this.#child = Bun.spawn([...ownCommand(TYPE_CHECK_ARGUMENT), directory], {
      env: RUNNER_ENVIRONMENT,
      // A group of its own keeps Ctrl-C away from the checker: this process ends the check.
      detached: true,
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    this.#lines = linesOf(this.#child.stdout)
  }

  check(input: TypeCheckInput): Promise<TypeCheckResult> {
    const result = this.#last.then(() => this.#ask(input))
    this.#last = result.catch(() => undefined)
    return result
  }

  close(): void {
    this.#child.kill()
  }

  async #ask({ modules, description }: TypeCheckInput): Promise<TypeCheckResult> {
    const files = [
      SCHEMA_FILE,
      ...modules.map(({ file }) => file),
      ...['api.ts', 'globals.d.ts', 'svc.d.ts'].map((name) => `_generated/${name}`),
    ]
    const functions = functionsOf(modules, description)
    this.#child.stdin.write(`${JSON.stringify({ files, functions })}\n`)
    await this.#child.stdin.flush()
    const { value, done } = await this.#lines.next()
    if (done === true) throw await this.#ended()
    const reply = JSON.parse(value) as TypeCheckReply
    if ('failure' in reply) throw failed(reply.failure)
    return reply
  }

  async #ended(): Promise<Fault> {
    return failed((await new Response(this.#child.stderr).text()).slice(0, 1_000))
  }
}

function failed(reason: string): Fault {
  const detail = `The type check failed: ${reason} Give --no-typecheck to build without it.`
  return new Fault('CLIENT_FAILED', { detail })
}

function functionsOf(
  modules: readonly WorkspaceModule[],
  { functions }: WorkspaceDescription,
): CheckedFunction[] {
  const files = new Map(modules.map(({ name, file }) => [name, file]))
  return functions.flatMap(({ name, kind, uses }) => {
    const dot = name.lastIndexOf('.')
    const file = files.get(name.slice(0, dot))
    if (file === undefined) return []
    return [{ name, kind, file, exported: name.slice(dot + 1), secrets: uses?.secrets ?? [] }]
  })
}

async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of stream) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop()!
    yield* lines
  }
}
