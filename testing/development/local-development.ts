/** Runs `svc dev` in the test process, on a root and a Workspace of its own. */
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { DevelopmentEvent } from '../../src/client/development/events.ts'
import type { CopyRequest } from '../../src/client/development/workspace-tools.ts'
import { describeInSandbox } from '../../src/dev/building/sandboxed-describe.ts'
import { runDevelopment } from '../../src/dev/local/svc-dev.ts'
import type { StartTypeChecker } from '../../src/dev/type-check/type-check.ts'
import { realSystem } from '../../src/system/system.ts'
import { makeRoot } from '../product-roots.ts'

const system = realSystem()

type Name = DevelopmentEvent['event']
export type EventOf<N extends Name> = Extract<DevelopmentEvent, { readonly event: N }>

export interface StartOptions {
  readonly seed?: string
  readonly reset?: boolean
  readonly port?: number
  readonly opensToNetwork?: boolean
  readonly startTypeChecker?: StartTypeChecker
  readonly copy?: CopyRequest
}

/** A schema with one table of notes; `more` are further fields. */
export const notesSchema = (more = ''): string => `import { defineSchema, table, v } from 'svc'
export default defineSchema({
  notes: table({ text: v.string(), ${more} }).index('byText', ['text']),
})
`

/** Functions that list and add notes; `version` shows which code is served. */
export const notesFunctions = (version: string | number): string => `
import { internalMutation, mutation, query, v } from 'svc'
const clients = ['public'] as const
export const version = query({
  clients, returns: v.string(), handler: () => '${version}',
})
export const list = query({
  clients, returns: v.array(v.string()),
  handler: async (ctx) => (await ctx.db.table('notes').scan().collect()).map(({ text }) => text),
})
export const add = mutation({
  clients, arguments: { text: v.string() }, returns: v.null(),
  handler: async (ctx, { text }) => { await ctx.db.insert('notes', { text }); return null },
})
export const seed = internalMutation({
  arguments: { text: v.string() }, returns: v.null(),
  handler: async (ctx, { text }) => { await ctx.db.insert('notes', { text }); return null },
})
export const fail = query({
  clients, returns: v.null(),
  handler: () => {
    console.log('before', 1)
    throw new Error('broken on purpose')
  },
})
`

export class LocalDevelopment {
  readonly root: string
  readonly workspace = mkdtempSync(join(tmpdir(), 'svc-dev-'))
  readonly events: DevelopmentEvent[] = []
  #running: { readonly ended: Promise<void>; readonly stop: AbortController } | null = null
  readonly #waiting = new Set<() => void>()

  constructor() {
    this.root = makeRoot({ descriptor: { workspace: this.workspace } })
    this.write('schema.ts', notesSchema())
    this.write('functions/notes.ts', notesFunctions(1))
  }

  /** Resolves when calls are answered. */
  async start(options: StartOptions = {}): Promise<EventOf<'ready'>> {
    const { seed, reset = false, port = 0, opensToNetwork = false, startTypeChecker } = options
    const { copy = null } = options
    const from = this.events.length
    const stop = new AbortController()
    const ended = runDevelopment({
      rootPath: this.root,
      workspaceDirectory: this.workspace,
      port,
      reset,
      copy,
      variables: {},
      describe: describeInSandbox,
      opensToNetwork,
      seed: seed === undefined ? null : Buffer.from(seed),
      signal: stop.signal,
      startTypeChecker,
      report: (event) => {
        this.events.push(event)
        for (const check of this.#waiting) check()
      },
    })
    this.#running = { ended, stop }
    return Promise.race([
      this.next('ready', () => true, from),
      ended.then(() => Promise.reject(new Error('svc dev ended'))),
    ])
  }

  /** Resolves with the first event of this name from `from` on, also with an earlier one. */
  next<N extends Name>(
    name: N,
    fits: (event: EventOf<N>) => boolean = () => true,
    from = this.events.length,
  ): Promise<EventOf<N>> {
    return new Promise((resolve) => {
      let at = from
      const check = (): void => {
        for (; at < this.events.length; at++) {
          const event = this.events[at]!
          if (event.event !== name || !fits(event as EventOf<N>)) continue
          this.#waiting.delete(check)
          resolve(event as EventOf<N>)
          return
        }
      }
      this.#waiting.add(check)
      check()
    })
  }

  /** Writes a file as editors do that replace it by renaming a new one. */
  write(path: string, text: string): void {
    const whole = join(this.workspace, path)
    mkdirSync(dirname(whole), { recursive: true })
    writeFileSync(`${whole}~`, text)
    renameSync(`${whole}~`, whole)
  }

  /** Calls a Function and returns the body of the response. */
  async call(
    name: string,
    fields: Readonly<Record<string, string>> = {},
    { kind = 'query', target = 'channel:dev' }: { kind?: string; target?: string } = {},
  ) {
    const { url, applicationKey } = this.events.findLast(
      (event): event is EventOf<'ready'> => event.event === 'ready',
    )!
    const value = Object.entries(fields).map(([key, text]) => ({
      key,
      value: { type: 'string', value: text },
    }))
    const operationId = system.ids.make('opn')
    const response = await fetch(`${url}/v1/${kind}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-service-key': applicationKey },
      body: JSON.stringify({
        version: 1,
        target,
        function: name,
        arguments: { type: 'object', value },
        ...(kind === 'mutation' && { operationId }),
      }),
    })
    return (await response.json()) as {
      readonly status: string
      readonly result?: { readonly value?: unknown }
      readonly metadata?: { readonly commitSequence: string }
      readonly error?: { readonly code: string }
    }
  }

  /** Returns the version that answers, or the code of the error. */
  async version(target?: string): Promise<unknown> {
    const { result, error } = await this.call('notes.version', {}, target ? { target } : {})
    return result?.value ?? error?.code
  }

  /** Stops `svc dev` and waits for its end. */
  async stop(): Promise<void> {
    this.#running?.stop.abort()
    await this.#running?.ended.catch(() => undefined)
    this.#running = null
  }

  async dispose(): Promise<void> {
    await this.stop()
    for (const path of [this.root, this.workspace]) rmSync(path, { recursive: true, force: true })
  }
}
