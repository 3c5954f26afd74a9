/** Validators in a few words, as operators read them beside a change. */
import { canonicalJson } from '../../../value/canonical-json.ts'
import type { FieldsJson, ValidatorJson } from '../../../value/validators.ts'
import { shownLiteral } from './gaps.ts'

const TEXT_CHARACTERS_MAX = 60

type Field = FieldsJson[string]

/** Returns the change of a field; undefined stands for an absent one. */
export function fieldText(before: Field | undefined, after: Field | undefined): string {
  if (before === undefined) return `the field is added: ${textOf(after!)}`
  if (after === undefined) return `the field is removed: ${textOf(before)}`
  const [was, is] = [textOf(before), textOf(after)]
  return was === is ? `the field changes inside: ${is}` : `${was} becomes ${is}`
}

function textOf(field: Field): string {
  if (field.type !== 'optional') return shortened(validatorText(field))
  if (field.default === undefined) return `optional ${shortened(validatorText(field.inner))}`
  const value = shortened(canonicalJson(field.default))
  return `${shortened(validatorText(field.inner))} with the default ${value}`
}

function validatorText(json: ValidatorJson): string {
  switch (json.type) {
    case 'literal':
      return shownLiteral(json.value)
    case 'id':
      return `an ID of ${json.table}`
    case 'nullable':
      return `nullable ${validatorText(json.inner)}`
    case 'open':
      return `open ${validatorText(json.inner)}`
    case 'union':
      return json.members.map(validatorText).join(' | ')
    case 'array':
      return `array of ${validatorText(json.items)}${upTo(json.maximumItems)}`
    case 'record':
      return `record of ${validatorText(json.values)}${upTo(json.maximumItems)}`
    case 'int64':
    case 'float64':
      return `${json.type}${range(json.minimum, json.maximum)}`
    case 'string': {
      const pattern = json.pattern === undefined ? '' : ` like /${json.pattern}/`
      return `string${range(json.minimumLength, json.maximumLength)}${pattern}`
    }
    case 'bytes':
      return `bytes${upTo(json.maximumLength)}`
    default:
      return json.type
  }
}

function upTo(maximum: number | undefined): string {
  return maximum === undefined ? '' : ` (at most ${maximum})`
}

function range(minimum: string | number | undefined, maximum: string | number | undefined): string {
  if (minimum === undefined) return maximum === undefined ? '' : ` (at most ${maximum})`
  return maximum === undefined ? ` (at least ${minimum})` : ` (${minimum} to ${maximum})`
}

function shortened(text: string): string {
  if (text.length <= TEXT_CHARACTERS_MAX) return text
  return `${text.slice(0, TEXT_CHARACTERS_MAX - 3).toWellFormed()}...`
}
