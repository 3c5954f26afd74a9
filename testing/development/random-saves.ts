/**
 * Saves a Workspace at random, as editors, version control and mistakes do, and compares the code
 * that answers with the last valid state after each of them.
 */
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { listNewChildren } from './child-processes.ts'
import { LocalDevelopment, notesFunctions, notesSchema } from './local-development.ts'

/** Resources of the process, and the files of the root. */
export interface Footprint {
  readonly residentBytes: number
  readonly descriptors: number
  readonly children: number
  readonly artifacts: number
}

const MAIN = 'functions/notes.ts'
const CHECKOUT_FILES = 500

export class RandomSaves {
  readonly dev = new LocalDevelopment()
  readonly #children = listNewChildren()
  readonly #random: () => number
  /** The answer of `notes.version` in the last valid state. */
  #expected = '1'
  #count = 1
  #fields = 0

  constructor(seed: number) {
    let state = seed || 1
    this.#random = () => {
      // xorshift32
      state ^= state << 13
      state ^= state >>> 17
      state ^= state << 5
      return (state >>> 0) / 2 ** 32
    }
  }

  /** Makes one save and resolves when its effect was observed. */
  async save(): Promise<string> {
    const kinds = [
      'renamed',
      'in place',
      'syntax',
      'load',
      'schema',
      'deleted',
      'checkout',
    ] as const
    const kind = kinds[Math.floor(this.#random() * kinds.length)]!
    this.#count += 1
    const version = String(this.#count)
    const from = this.dev.events.length
    switch (kind) {
      case 'renamed':
        this.dev.write(MAIN, notesFunctions(version))
        return this.#valid(kind, version)
      case 'in place':
        mkdirSync(join(this.dev.workspace, 'functions'), { recursive: true })
        writeFileSync(join(this.dev.workspace, MAIN), notesFunctions(version))
        return this.#valid(kind, version)
      case 'syntax':
        this.dev.write(MAIN, `${notesFunctions(version)}\nexport const ${version} = = 1`)
        return this.#invalid(kind, from)
      case 'load':
        this.dev.write(MAIN, `${notesFunctions(version)}\nthrow new Error('load ${version}')`)
        return this.#invalid(kind, from)
      case 'schema':
        this.#fields = (this.#fields + 1) % 5
        this.dev.write('schema.ts', notesSchema(`f${this.#fields}: v.optional(v.string()),`))
        this.dev.write(MAIN, notesFunctions(version))
        return this.#valid(kind, version)
      case 'deleted':
        rmSync(join(this.dev.workspace, 'functions'), { recursive: true, force: true })
        return this.#valid(kind, 'FUNCTION_NOT_FOUND')
      case 'checkout':
        this.#checkOut(version)
        return this.#valid(kind, version)
    }
  }

  footprint(): Footprint {
    // The directories that have files, one for each start of a digest, stay.
    const files = (path: string) =>
      readdirSync(path, { recursive: true, withFileTypes: true }).filter((each) => each.isFile())
    return {
      residentBytes: process.memoryUsage().rss,
      descriptors: readdirSync('/proc/self/fd').length,
      children: this.#children().length,
      artifacts: files(join(this.dev.root, 'artifacts/sha256')).length,
    }
  }

  /** Replaces 500 files, as a change of the branch does. */
  #checkOut(version: string): void {
    const folder = join(this.dev.workspace, 'functions/many')
    rmSync(folder, { recursive: true, force: true })
    for (let i = 0; i < CHECKOUT_FILES; i++) {
      const text = `export const value = '${version} ${i}'\n`
      this.dev.write(`functions/many/f${i % 20}/g${i}.ts`, text)
    }
    this.dev.write(MAIN, notesFunctions(version))
  }

  async #valid(kind: string, version: string): Promise<string> {
    this.#expected = version
    await expect.poll(() => this.dev.version(), { interval: 10 }).toBe(version)
    return kind
  }

  async #invalid(kind: string, from: number): Promise<string> {
    await this.dev.next('rejected', () => true, from)
    expect(await this.dev.version()).toBe(this.#expected)
    return kind
  }
}
