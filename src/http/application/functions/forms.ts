/**
 * The plain form of the arguments and results of each Function. A codec is compiled with the first
 * call of its Function. The plain texts of cached results are kept, since converting a long result
 * takes as long as a call that runs.
 */
import { Fault } from '../../../errors/fault.ts'
import { CONTENT_CODINGS, type CompressedForms, KeptForms } from '../../../system/compression.ts'
import { DEFAULT_PLAN, type MemoryPlan } from '../../../system/memory/memory-plan.ts'
import type { FunctionManifest } from '../../../value/manifest.ts'
import { flatText } from '../../../value/memory/flat-text.ts'
import { compilePlainDecoder } from '../../../value/plain-json/decoding.ts'
import { compilePlainEncoder, type IntegerForm } from '../../../value/plain-json/encoding.ts'
import { compilePlainParameter } from '../../../value/plain-json/parameters.ts'
import type { Json } from '../../../value/strict-json.ts'
import { ValidationError } from '../../../value/validation-error.ts'
import type { ValueObject } from '../../../value/values.ts'

/** The plain text of a result that a cache holds, with its compressed forms. */
interface KeptText {
  readonly text: string
  readonly forms: CompressedForms
}

interface Form {
  readonly read: ReturnType<typeof compilePlainDecoder>
  /** Readers of arguments in URLs, by name. */
  readonly parameters: Map<string, ReturnType<typeof compilePlainParameter>>
  readonly write: Record<IntegerForm, ReturnType<typeof compilePlainEncoder> | null>
  /** Plain texts by the tagged text, which the cache of Queries holds too. */
  readonly kept: Record<IntegerForm, Map<string, KeptText>>
}

export class PlainForms {
  /** The Functions of a Release are one object each, for as long as the Release is in memory. */
  readonly #forms = new WeakMap<FunctionManifest, Form>()
  /** The maps of `kept` that have texts. */
  readonly #filled = new Set<Map<string, KeptText>>()
  readonly #charactersMax: number
  #characters = 0

  constructor({ plainCharacters }: Pick<MemoryPlan, 'plainCharacters'> = DEFAULT_PLAN) {
    this.#charactersMax = plainCharacters
  }

  /** Reads arguments. Throws ARGUMENTS_INVALID. */
  read(definition: FunctionManifest, json: Json): ValueObject {
    try {
      return this.#formOf(definition).read(json, 'arguments') as ValueObject
    } catch (error) {
      if (!(error instanceof ValidationError)) throw error
      throw new Fault('ARGUMENTS_INVALID', { detail: error.message })
    }
  }

  /** Returns the JSON that an argument in a URL stands for. An undeclared one is its text. */
  parameter(definition: FunctionManifest, name: string, text: string): Json {
    if (!Object.hasOwn(definition.arguments, name)) return text
    const { parameters } = this.#formOf(definition)
    let read = parameters.get(name)
    if (read === undefined) {
      const field = definition.arguments[name]!
      read = compilePlainParameter(field.type === 'optional' ? field.inner : field)
      parameters.set(name, read)
    }
    return read(text)
  }

  /** Returns the plain text of a tagged result. */
  write(definition: FunctionManifest, tagged: string, integers: IntegerForm): string {
    const { write } = this.#formOf(definition)
    write[integers] ??= compilePlainEncoder(definition.returns, integers)
    return write[integers](tagged)
  }

  /** Returns the plain text of a result that a cache holds, and keeps it. */
  writeCached(definition: FunctionManifest, tagged: string, integers: IntegerForm): KeptText {
    const kept = this.#formOf(definition).kept[integers]
    const known = kept.get(tagged)
    if (known !== undefined) return known
    const text = flatText(this.write(definition, tagged, integers))
    // Of each content coding there is a form, which is shorter than the text.
    const characters = tagged.length + text.length * (1 + CONTENT_CODINGS.length)
    if (characters > this.#charactersMax) return { text, forms: new KeptForms() }
    if (this.#characters + characters > this.#charactersMax) {
      for (const texts of this.#filled) texts.clear()
      this.#filled.clear()
      this.#characters = 0
    }
    this.#characters += characters
    const plain = { text, forms: new KeptForms() }
    kept.set(tagged, plain)
    this.#filled.add(kept)
    return plain
  }

  #formOf(definition: FunctionManifest): Form {
    const known = this.#forms.get(definition)
    if (known !== undefined) return known
    const form: Form = {
      read: compilePlainDecoder({ type: 'object', fields: definition.arguments }),
      parameters: new Map(),
      write: { number: null, string: null },
      kept: { number: new Map(), string: new Map() },
    }
    this.#forms.set(definition, form)
    return form
  }
}
