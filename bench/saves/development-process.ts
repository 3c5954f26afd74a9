/** The compiled `svc dev` on a generated Workspace. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

const CLIENT = join(import.meta.dirname, '../../dist/svc')
const FUNCTIONS_PER_FILE = 10
/** Time between two calls: without a pause they would use the processors that the build needs. */
const POLL_MILLIS = 2

const SCHEMA = `import { defineSchema, table, v } from 'svc'
export default defineSchema({ items: table({ text: v.string() }).index('byText', ['text']) })
`

function moduleText(file: number, version: number): string {
  const functions = Array.from({ length: FUNCTIONS_PER_FILE }, (_, i) => {
    return `export const q${i} = query({
  clients: ['public'],
  arguments: { text: v.optional(v.string()) },
  returns: v.string(),
  handler: async (ctx, { text }) => {
    const named = ctx.db.table('items').index('byText', (q) => q.eq('text', text ?? ''))
    const found = await named.first()
    return found?.text ?? '${file} ${i} ${version}'
  },
})`
  })
  return `import { query, v } from 'svc'\n${functions.join('\n')}\n`
}

export class DevelopmentProcess {
  readonly #directory = mkdtempSync(join(tmpdir(), 'svc-saves-'))
  readonly workspace = join(this.#directory, 'app')
  #child: ChildProcess | null = null
  #url = ''
  #key = ''
  #version = 0

  /** Writes a Workspace with this number of Functions. */
  constructor(functions: number) {
    mkdirSync(join(this.workspace, 'functions'), { recursive: true })
    writeFileSync(join(this.workspace, 'schema.ts'), SCHEMA)
    for (let file = 0; file < functions / FUNCTIONS_PER_FILE; file++) {
      writeFileSync(join(this.workspace, `functions/f${file}.ts`), moduleText(file, 0))
    }
  }

  get entry(): string {
    return join(this.workspace, 'functions/f0.ts')
  }

  /** Starts it and resolves with the milliseconds until the first answer. */
  async start(): Promise<number> {
    const startedAt = performance.now()
    const root = join(this.#directory, 'root')
    const args = ['dev', '--root', root, '--workspace', this.workspace, '--port', '0', '--json']
    this.#child = spawn(CLIENT, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    for await (const line of createInterface({ input: this.#child.stdout! })) {
      const event = JSON.parse(line)
      if (event.event !== 'ready') continue
      this.#url = event.url
      this.#key = event.applicationKey
      break
    }
    this.#child.stdout!.resume()
    await this.#answer()
    return performance.now() - startedAt
  }

  /** Saves a file and resolves with the milliseconds until its new code answers. */
  async save(): Promise<number> {
    this.#version += 1
    writeFileSync(`${this.entry}~`, moduleText(0, this.#version))
    const startedAt = performance.now()
    renameSync(`${this.entry}~`, this.entry)
    while ((await this.#answer()) !== `0 0 ${this.#version}`) await Bun.sleep(POLL_MILLIS)
    return performance.now() - startedAt
  }

  async stop(): Promise<void> {
    const ended = new Promise((resolve) => this.#child?.once('close', resolve))
    this.#child?.kill('SIGINT')
    await ended
    rmSync(this.#directory, { recursive: true, force: true })
  }

  async #answer(): Promise<unknown> {
    const response = await fetch(`${this.#url}/v1/query`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-service-key': this.#key },
      body: JSON.stringify({
        version: 1,
        target: 'channel:dev',
        function: 'f0.q0',
        arguments: { type: 'object', value: [] },
      }),
    })
    const { result } = (await response.json()) as { result?: { value?: unknown } }
    return result?.value
  }
}
