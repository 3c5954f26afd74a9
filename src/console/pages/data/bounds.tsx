/** The index that documents are listed by, and the bounds of its fields. */
import { useState } from 'preact/hooks'
import type { Json } from '../../../value/strict-json.ts'
import type { ValidatorJson } from '../../../value/validators.ts'
import type { TableCatalog } from '../../../wire/catalogs.ts'
import { invalid, parsedJson, taggedOfJson } from '../../plain-values.ts'

type TableField = TableCatalog['tables'][number]

export interface IndexChoice {
  /** Empty for the creation order. */
  readonly index: string
  readonly order: 'asc' | 'desc'
  /** A field, an operator and a value each, such as `room eq general`. */
  readonly bounds: readonly string[]
}

const OPERATORS = { eq: '=', gt: '>', gte: '≥', lt: '<', lte: '≤' } as const
type Operator = keyof typeof OPERATORS

interface Bound {
  readonly field: string
  readonly op: Operator
  readonly value: Json
}

/** The bounds as the request has them. Throws a Failure for a value of another type. */
export function boundsOf({ bounds }: IndexChoice, table: TableField): Bound[] {
  return bounds.flatMap((bound) => {
    const { field, op, text } = splitBound(bound)
    if (text === '' || !isOperator(op)) return []
    return [{ field, op, value: taggedField(field, text, table) }]
  })
}

function isOperator(text: string): text is Operator {
  return Object.hasOwn(OPERATORS, text)
}

function splitBound(bound: string) {
  const [field = '', op = '', ...rest] = bound.split(' ')
  return { field, op, text: rest.join(' ') }
}

/** Parses the text of a bound by the validator of the field: a text, or else JSON. */
function taggedField(field: string, text: string, { fields }: TableField): Json {
  const declared = field === '_createdAt' ? ({ type: 'timestamp' } as const) : fields[field]
  if (declared === undefined) throw invalid(`there is no field ${field}`)
  const validator: ValidatorJson = declared.type === 'optional' ? declared.inner : declared
  const only = { [field]: validator }
  const tagged = isText(validator)
    ? taggedOfJson({ [field]: text }, only)
    : taggedOfJson({ [field]: parsedJson(text) }, only)
  const { value } = tagged as { value: { key: string; value: Json }[] }
  return value.find(({ key }) => key === field)?.value ?? null
}

function isText(validator: ValidatorJson): boolean {
  const types = ['string', 'id', 'timestamp', 'bytes', 'int64']
  const inner = validator.type === 'nullable' ? validator.inner : validator
  return types.includes(inner.type)
}

/** The choice as the parameters of the address. */
export function parametersOf(
  { index, order, bounds }: IndexChoice,
  more: Readonly<Record<string, string>>,
): URLSearchParams {
  const parameters = new URLSearchParams({ ...more, order })
  if (index !== '') parameters.set('index', index)
  for (const bound of bounds) parameters.append('bound', bound)
  return parameters
}

export function IndexForm({
  table,
  choice,
  onChoose,
}: {
  table: TableField
  choice: IndexChoice
  onChoose: (choice: IndexChoice) => void
}) {
  const [index, setIndex] = useState(choice.index)
  const declared = table.indexes.find(({ name }) => name === index)
  const fields = [...(declared?.fields ?? []), '_createdAt']
  const submit = (event: SubmitEvent): void => {
    event.preventDefault()
    const form = new FormData(event.currentTarget as HTMLFormElement)
    const bounds = fields.flatMap((field) => {
      const text = String(form.get(`value ${field}`) ?? '').trim()
      return text === '' ? [] : [`${field} ${form.get(`op ${field}`)} ${text}`]
    })
    onChoose({ index, order: form.get('order') === 'asc' ? 'asc' : 'desc', bounds })
  }
  return (
    <form onSubmit={submit}>
      <label class="field">
        <span class="label">Index</span>
        <select value={index} onChange={(event) => setIndex(event.currentTarget.value)}>
          <option value="">creation order</option>
          {table.indexes.map(({ name }) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      </label>
      {fields.map((field) => (
        <BoundInput
          key={`${index} ${field}`}
          field={field}
          bound={choice.bounds.find((each) => each.startsWith(`${field} `))}
        />
      ))}
      <label class="field">
        <span class="label">Order</span>
        <select name="order" defaultValue={choice.order}>
          <option value="desc" selected={choice.order === 'desc'}>
            descending
          </option>
          <option value="asc" selected={choice.order === 'asc'}>
            ascending
          </option>
        </select>
      </label>
      <button type="submit" class="main">
        Show
      </button>
    </form>
  )
}

function BoundInput({ field, bound }: { field: string; bound: string | undefined }) {
  const { op, text } = splitBound(bound ?? '')
  return (
    <div class="field">
      <span class="label">{field}</span>
      <span class="buttons-inline">
        <select name={`op ${field}`} aria-label={`Comparison of ${field}`}>
          {Object.entries(OPERATORS).map(([name, sign]) => (
            <option key={name} value={name} selected={name === op}>
              {sign}
            </option>
          ))}
        </select>
        <input
          name={`value ${field}`}
          aria-label={`Value of ${field}`}
          defaultValue={text}
          autocomplete="off"
          spellcheck={false}
        />
      </span>
    </div>
  )
}
