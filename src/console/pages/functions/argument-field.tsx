/** The controls of one argument: whether it is given, which alternative it is, and its text. */

import { validatorText } from '../../../client/validator-text.ts'
import { printable } from '../../../client/visible-text.ts'
import type { FieldsJson, ValidatorJson } from '../../../value/validators.ts'
import { Shown } from '../../parts/shown.tsx'
import { choicesOf, type Entry, innerOf, inputKindOf, type Violation } from './arguments.ts'

/** Characters of the shape of an argument. */
const SHAPE_CHARACTERS_MAX = 2_000
const CHOICE_CHARACTERS_MAX = 80

interface FieldProperties {
  readonly name: string
  readonly field: FieldsJson[string]
  readonly entry: Entry
  readonly violations: readonly Violation[]
  readonly onChange: (entry: Entry) => void
}

export function ArgumentField({ name, field, entry, violations, onChange }: FieldProperties) {
  const validator = innerOf(field)
  const choices = choicesOf(validator)
  const member = choices[entry.choice]!
  const shown = printable(name)
  return (
    <fieldset class="argument">
      <legend>
        <strong>
          <Shown text={name} />
        </strong>{' '}
        <code>
          <Shown text={validatorText(validator)} max={SHAPE_CHARACTERS_MAX} />
        </code>{' '}
        <Shown text={boundsText(member)} max={SHAPE_CHARACTERS_MAX} />
      </legend>
      {field.type === 'optional' && (
        <label class="field check">
          <input
            type="checkbox"
            name={`absent ${name}`}
            checked={entry.isAbsent}
            onChange={(event) => onChange({ ...entry, isAbsent: event.currentTarget.checked })}
          />
          <span>
            {field.default === undefined
              ? 'leave it out'
              : 'leave it out: the default stands for it'}
          </span>
        </label>
      )}
      {!entry.isAbsent && choices.length > 1 && (
        <select
          name={`choice ${name}`}
          aria-label={`Value of ${shown}`}
          value={String(entry.choice)}
          onChange={(event) => onChange({ ...entry, choice: Number(event.currentTarget.value) })}
        >
          {choices.map((each, i) => (
            <option key={String(i)} value={String(i)} selected={i === entry.choice}>
              {choiceText(each)}
            </option>
          ))}
        </select>
      )}
      {!entry.isAbsent && (choices.length === 1 || inputKindOf(member) !== 'none') && (
        <Control
          name={name}
          member={member}
          text={entry.text}
          isInvalid={violations.length > 0}
          onText={(text) => onChange({ ...entry, text })}
        />
      )}
      {violations.map(({ path, rule }) => (
        <p key={`${path} ${rule}`} class="violation">
          <Shown text={`${path}: ${rule}`} max={400} />
        </p>
      ))}
    </fieldset>
  )
}

function choiceText(member: ValidatorJson): string {
  const text = validatorText(member)
  const cut = text.length > CHOICE_CHARACTERS_MAX
  return printable(cut ? `${text.slice(0, CHOICE_CHARACTERS_MAX)}…` : text)
}

interface ControlProperties {
  readonly name: string
  readonly member: ValidatorJson
  readonly text: string
  readonly isInvalid: boolean
  readonly onText: (text: string) => void
}

function Control({ name, member, text, isInvalid, onText }: ControlProperties) {
  const kind = inputKindOf(member)
  if (kind === 'none') return <code>{choiceText(member)}</code>
  const shared = {
    name: `argument ${name}`,
    'aria-label': printable(name),
    'aria-invalid': isInvalid,
    spellcheck: false,
    value: text,
  }
  if (kind === 'line') {
    return (
      <input
        {...shared}
        autocomplete="off"
        placeholder={`such as ${exampleOf(member)}`}
        onInput={(event) => onText(event.currentTarget.value)}
      />
    )
  }
  return (
    <textarea
      {...shared}
      class={kind === 'text' ? 'short' : undefined}
      rows={kind === 'text' ? 1 : 4}
      onInput={(event) => onText(event.currentTarget.value)}
    />
  )
}

/** Returns what a value looks like where its type has a form of its own. */
function exampleOf(member: ValidatorJson): string {
  switch (member.type) {
    case 'id':
      return `${member.table === 'files' ? 'fil' : member.table}_…`
    case 'bytes':
      return 'base64url'
    case 'timestamp':
      return '2026-01-31T08:00:00Z'
    case 'int64':
      return `${member.minimum ?? 0}`
    default:
      return '0.5'
  }
}

/** Returns the bounds that a type has beside its name; empty without any. */
function boundsText(member: ValidatorJson): string {
  switch (member.type) {
    case 'int64':
    case 'float64':
      return [
        member.minimum === undefined ? '' : `at least ${member.minimum}`,
        member.maximum === undefined ? '' : `at most ${member.maximum}`,
      ]
        .filter((each) => each !== '')
        .join(', ')
    case 'string':
      return [
        member.minimumLength === undefined ? '' : `length at least ${member.minimumLength}`,
        member.maximumLength === undefined ? '' : `length at most ${member.maximumLength}`,
        member.pattern === undefined ? '' : `pattern ${member.pattern}`,
      ]
        .filter((each) => each !== '')
        .join(', ')
    case 'bytes':
      return member.maximumLength === undefined ? '' : `at most ${member.maximumLength} bytes`
    case 'array':
    case 'record':
      return member.maximumItems === undefined ? '' : `at most ${member.maximumItems} items`
    default:
      return ''
  }
}
