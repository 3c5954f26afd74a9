/** Imports whose client is killed again and again, until one ends. */
import { spawn } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Application, Json } from '../application.ts'
import { argv } from '../argv.ts'
import { CLIENT } from '../harness.ts'

export interface KilledImports {
  /** The result that the last run printed. */
  readonly result: Json
  /** Lines that the journal had after each kill. */
  readonly killedAfter: readonly number[]
  /** Total milliseconds of all runs. */
  readonly millis: number
}

/** Kills the import `kills` times, each time after its journal has advanced. */
export async function importWithKills(
  app: Application,
  { count, kills }: { readonly count: number; readonly kills: number },
): Promise<KilledImports> {
  const file = join(app.installation.directory, `notes-${count}.jsonl`)
  writeFileSync(file, [...linesOf(count)].join(''))
  const journal = `${file}.journal`
  const linesDone = (): number => {
    try {
      return JSON.parse(readFileSync(journal, 'utf8')).lines
    } catch {
      return 0
    }
  }
  const killedAfter: number[] = []
  const began = performance.now()
  for (;;) {
    const before = linesDone()
    const goal = before + Math.ceil(count / (kills * 3))
    const child = spawn(CLIENT, argv`data import channels ${file} ${where(app)} --json`, {
      env: { ...app.installation.clientEnvironment },
      cwd: join(app.installation.directory, 'run'),
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const output = { out: '', err: '' }
    child.stdout.on('data', (text: Buffer) => {
      output.out += text
    })
    child.stderr.on('data', (text: Buffer) => {
      output.err += text
    })
    const watch =
      killedAfter.length < kills
        ? setInterval(() => linesDone() >= goal && child.kill('SIGKILL'), 2)
        : undefined
    const status = await new Promise<number | null>((resolve) => child.once('close', resolve))
    clearInterval(watch)
    if (status === null) killedAfter.push(linesDone())
    else if (status === 0) {
      const millis = performance.now() - began
      return { result: JSON.parse(output.out), killedAfter, millis }
    } else throw new Error(`svc data import: ${status}\n${output.out}${output.err}`)
  }
}

export function where(app: Application): string[] {
  const { productRoot } = app.installation
  return argv`--remote --root ${productRoot} --target channel:production`
}

function* linesOf(count: number): Generator<string> {
  for (let i = 0; i < count; i++) yield `{"name":"channel ${i}"}\n`
}

/** Exports the table and returns the names of the channels in the order of their creation. */
export async function exportedNames(app: Application, file: string): Promise<string[]> {
  const path = join(app.installation.directory, file)
  await app.svc(argv`data export channels ${path} ${where(app)}`)
  const lines = readFileSync(path, 'utf8').trimEnd().split('\n')
  return lines.map((line) => JSON.parse(line).name)
}

export function namesOf(count: number): string[] {
  return Array.from({ length: count }, (_, i) => `channel ${i}`)
}
