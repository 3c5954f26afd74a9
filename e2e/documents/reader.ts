/** Runs the commands of a document in order, with the values that a reader would fill in. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Sample, samplesOf } from '../../build/samples/blocks.ts'
import type {
  BlockRun,
  CommandRun,
  DocumentRun,
  Preparation,
  WriteSample,
} from '../../build/samples/runs/types.ts'
import { commandsOf } from '../../testing/tapes/tape.ts'
import type { Result } from '../harness.ts'
import { type Running, SHELL, type Terminal } from './terminal.ts'

const ROOT = join(import.meta.dirname, '../..')
/** An ID in the output of a command. */
const ID = /\b([a-z]+)_[0-9A-HJKMNP-TV-Z]{26}\b/g
/** An ID that a sample leaves open: it is the one that a command printed last. */
const OPEN_ID = /\b([a-z]+)_(?:\.\.\.|ID\b)/g

export interface World {
  /** The working directory of the first command. */
  readonly directory: string
  readonly terminal: Terminal
  /** Addresses and names of samples, and those of the test. */
  readonly places: Readonly<Record<string, string>>
}

export interface Read {
  /** The commands as the document has them. */
  readonly commands: readonly string[]
}

/**
 * Runs every block of a document, also after one that failed. Throws with the place, the command
 * and the output of each that failed.
 */
export async function readDocument(run: DocumentRun, world: World): Promise<Read> {
  const text = readFileSync(join(ROOT, run.document), 'utf8')
  const samples = new Map(samplesOf(run.document, text).map((each) => [each.place, each]))
  const reader = new Reader(world, (block) => sampleAt(samples, `${run.document}#${block}`).text)
  const failures: string[] = []
  try {
    await reader.prepare(run.before ?? [])
    for (const block of run.blocks) {
      const sample = sampleAt(samples, `${run.document}#${block.block}`)
      try {
        await reader.block(sample, block, run.replace ?? {})
      } catch (error) {
        failures.push(`${sample.place}: ${(error as Error).message}`)
      }
    }
  } finally {
    await reader.end()
  }
  if (failures.length > 0) throw new Error(failures.join('\n\n'))
  return { commands: reader.commands }
}

function sampleAt(samples: ReadonlyMap<string, Sample>, place: string): Sample {
  const sample = samples.get(place)
  if (sample === undefined) throw new Error(`no sample is ${place}`)
  return sample
}

type Texts = Readonly<Record<string, string>>

class Reader {
  readonly commands: string[] = []
  readonly #world: World
  readonly #textAt: (block: string) => string
  /** The newest ID of each kind. */
  readonly #ids = new Map<string, string>()
  readonly #names = new Map<string, string>()
  #running: Running[] = []

  constructor(world: World, textAt: (block: string) => string) {
    this.#world = world
    this.#textAt = textAt
  }

  async block(sample: Sample, run: BlockRun, texts: Texts): Promise<void> {
    await this.prepare(run.before ?? [])
    const found = new Map<string, number>()
    const keys = Object.keys(run.commands ?? {}).toSorted((a, b) => b.length - a.length)
    for (const command of commandsOf(sample.text, SHELL)) {
      const key = keys.find((each) => command.startsWith(each)) ?? ''
      const count = found.get(key) ?? 0
      found.set(key, count + 1)
      const how = descriptionAt(run.commands?.[key], count)
      if (how.skip !== undefined) continue
      this.commands.push(command)
      await this.#command(command, how, { ...texts, ...run.replace, ...how.replace })
    }
    const unused = keys.filter((key) => !found.has(key))
    if (unused.length > 0) throw new Error(`it has no command ${unused.join(', ')}`)
    await this.prepare(run.after ?? [])
  }

  async prepare(preparations: readonly Preparation[]): Promise<void> {
    for (const each of preparations) {
      if (typeof each === 'string') await this.#command(each, {}, {})
      else if ('start' in each) {
        await this.#command(each.start, { until: each.until, stays: true }, {})
      } else if ('stop' in each) await this.#stop(each.stop)
      else if ('write' in each) this.#write(each)
      else {
        const { stdout, stderr } = await this.#command(each.command, {}, {})
        const found = each.pattern.exec(stdout)?.[1]
        if (found === undefined) throw new Error(`no ${each.as} in ${stdout}${stderr}`)
        this.#names.set(each.as, found)
      }
    }
  }

  async end(): Promise<void> {
    for (const running of this.#running.splice(0)) await running.stop()
  }

  #write({ write, sample, replace = {} }: WriteSample): void {
    let text = this.#textAt(sample)
    for (const [from, to] of Object.entries(replace)) {
      if (!text.includes(from)) throw new Error(`${sample} has no ${from}`)
      text = text.replaceAll(from, to)
    }
    writeFileSync(join(this.#world.directory, write), `${text}\n`)
  }

  async #stop(beginning: string): Promise<void> {
    const found = this.#running.find(({ command }) => command.startsWith(beginning))
    if (found === undefined) throw new Error(`${beginning} does not run`)
    this.#running = this.#running.filter((each) => each !== found)
    expectExit(found.command, 0, await found.stop())
  }

  async #command(command: string, how: CommandRun, texts: Texts): Promise<Result> {
    await this.prepare(how.before ?? [])
    const typed = this.#filled(command, texts)
    const { terminal } = this.#world
    if (how.until !== undefined) {
      const running = await terminal.start(typed, how.until)
      this.#note(running.output())
      if (how.stays === true) {
        this.#running.push({ ...running, command })
        return running.output()
      }
      const result = await running.stop()
      expectExit(typed, how.exit ?? 0, result)
      return result
    }
    const { types } = how
    const result = await (types === undefined ? terminal.run(typed) : terminal.type(typed, types))
    expectExit(typed, how.exit ?? 0, result)
    if (how.prints !== undefined && !how.prints.test(result.stdout)) {
      throw new Error(`${typed}\ndid not print ${how.prints}:\n${result.stdout}${result.stderr}`)
    }
    this.#note(result)
    return result
  }

  /** Keeps the first ID of each kind that a command printed. */
  #note({ stdout, stderr }: Result): void {
    const found = new Map<string, string>()
    for (const [id, kind = ''] of (stdout + stderr).matchAll(ID)) {
      if (!found.has(kind)) found.set(kind, id)
    }
    for (const [kind, id] of found) this.#ids.set(kind, id)
  }

  #filled(command: string, texts: Texts): string {
    let filled = command
    for (const all of [texts, this.#world.places, Object.fromEntries(this.#names)]) {
      const names = Object.keys(all).toSorted((a, b) => b.length - a.length)
      for (const name of names) filled = filled.replaceAll(name, all[name]!)
    }
    return filled.replace(OPEN_ID, (open, kind: string) => {
      const id = this.#ids.get(kind)
      if (id === undefined) throw new Error(`${filled}\nno command has printed what ${open} is`)
      return id
    })
  }
}

/** Returns the description of the command that is the one with this number, counted from 0. */
function descriptionAt(all: CommandRun | readonly CommandRun[] = {}, number: number): CommandRun {
  const list: readonly CommandRun[] = Array.isArray(all) ? all : [all as CommandRun]
  const found = Array.isArray(all) ? list[number] : list[0]
  if (found === undefined) throw new Error('it has more commands with a beginning than are listed')
  return found
}

function expectExit(command: string, expected: number, { status, stdout, stderr }: Result): void {
  if (status === expected) return
  throw new Error(`${command}\nexited with ${status}, not ${expected}:\n${stdout}${stderr}`)
}
