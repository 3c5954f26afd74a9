/** Text of the server as text: invisible and bidirectional characters visible, long text cut. */
import { printable, printableLines } from '../../client/visible-text.ts'

/** Characters of a cell of a table. */
const CELL_CHARACTERS_MAX = 160
/** Characters of a text that has a place of its own. */
const BLOCK_CHARACTERS_MAX = 20_000

/** Returns at most `max` characters, and how many there are where some are left out. */
function cut(text: string, max: number): { readonly text: string; readonly rest: string | null } {
  if (text.length <= max) return { text, rest: null }
  const end = text.slice(0, max).isWellFormed() ? max : max - 1
  const count = text.length.toLocaleString('en-US')
  return { text: text.slice(0, end), rest: `… (${count} characters)` }
}

/** A single line of stored text. */
export function Shown({ text, max = CELL_CHARACTERS_MAX }: { text: string; max?: number }) {
  const { text: head, rest } = cut(text, max)
  return (
    <span class="shown">
      {printable(head)}
      {rest !== null && <span class="cut">{rest}</span>}
    </span>
  )
}

/** Stored text of several lines. */
export function Block({ text, label }: { text: string; label: string }) {
  const { text: head, rest } = cut(text, BLOCK_CHARACTERS_MAX)
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a person scrolls it with the keyboard.
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for controls of a form.
    <pre class="block" tabIndex={0} role="group" aria-label={labelOf(label)}>
      {printableLines(head)}
      {rest !== null && <span class="cut">{rest}</span>}
    </pre>
  )
}

/** An identifier, which people copy. */
export function Identifier({ id }: { id: string }) {
  return <code class="identifier">{printable(id)}</code>
}

/** A choice whose name is stored text; a browser shows the text of an option alone. */
export function NamedOption({ value, name }: { value: string; name: string }) {
  return <option value={value}>{labelOf(name)}</option>
}

/** Returns stored text for an attribute or an option, in which no element can stand. */
export function labelOf(stored: string): string {
  const { text, rest } = cut(stored, CELL_CHARACTERS_MAX)
  return printable(text) + (rest ?? '')
}
