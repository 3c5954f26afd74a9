/** The forms that set a value. A secret is typed into a password field and leaves it when sent. */
import { useState } from 'preact/hooks'
import { printableLines } from '../../../client/visible-text.ts'
import { CONFIGURATION_NAME } from '../../../value/configuration.ts'
import { shellQuoted } from '../../../value/shell/shell-words.ts'
import type { ConfigurationList, EntryField } from '../../../wire/configuration.ts'
import { FailureNote, Section } from '../../parts/page.tsx'
import { call, Failure, failureOf, nowMicros } from '../../requests.ts'
import { ask, environmentId, notice, svcCommand } from '../../state.ts'

type Kind = EntryField['kind']

/** Characters of a value that stands in the command of a question. */
const QUOTED_CHARACTERS_MAX = 80

/**
 * Returns whether a text field keeps the value as it is: it turns carriage returns into line feeds,
 * and a person does not see invisible characters in it.
 */
export function isEditable(entry: EntryField): boolean {
  return entry.kind === 'variable' && printableLines(entry.value) === entry.value
}

interface Content {
  readonly name: string
  readonly kind: Kind
  readonly value: string
}

/** Sets a value of a configuration that has the revision. Throws a Failure. */
async function set({ name, kind, value }: Content, expectedRevision: string): Promise<void> {
  try {
    await call('setConfiguration', environmentId.value, {
      params: { name },
      body: { expectedRevision, kind, value, changedAtMicros: nowMicros() },
    })
  } catch (error) {
    const failure = failureOf(error)
    if (failure.code !== 'PRODUCT_CAS_CONFLICT') throw failure
    const { code, requestId, violations } = failure
    const message = 'The configuration was changed after this page was loaded.'
    const next = 'Reload, see in the history what was changed, then repeat the change.'
    throw new Failure({ code, message, next, requestId, violations })
  }
}

/** Asks before a value takes the place of another one. */
function askToReplace(content: Content, { revision }: ConfigurationList, done: () => void): void {
  const { name, kind } = content
  ask({
    title: `Replace the ${kind} ${name}?`,
    effects: [
      'Functions read the new value from their next call on. The value before is not kept.',
    ],
    command: svcCommand(`config set ${name} ${givenBy(content)} --expected ${revision}`),
    label: `Replace the ${kind}`,
    act: () => set(content, revision),
    done,
  })
}

/** The value as words of a command; a secret is never one, nor is a text that is hard to type. */
function givenBy({ kind, value }: Content): string {
  if (kind === 'secret') return '--secret --value-env VAR'
  const isPlain = /^[^\p{C}\p{Z}-][^\p{C}\p{Zl}\p{Zp}]*$/u.test(value)
  return isPlain && value.length <= QUOTED_CHARACTERS_MAX ? shellQuoted(value) : '--value-env VAR'
}

interface Of {
  readonly known: ConfigurationList
  readonly reload: () => void
}

export function ReplaceValue({ entry, known, reload }: Of & { entry: EntryField }) {
  const { name, kind } = entry
  const submit = (event: SubmitEvent): void => {
    event.preventDefault()
    const form = event.currentTarget as HTMLFormElement
    const value = fieldOf(form, 'value')
    askToReplace({ name, kind, value }, known, () => {
      form.reset()
      reload()
    })
  }
  return (
    <form key={entry.revision} onSubmit={submit} autocomplete="off">
      {kind === 'secret' ? (
        <SecretInput label="New value" name={name} />
      ) : (
        <VariableInput
          label={
            isEditable(entry)
              ? 'Value'
              : 'New value: the stored one has characters that a field does not keep'
          }
          value={isEditable(entry) ? entry.value : ''}
        />
      )}
      <button type="submit" class="main">
        Replace …
      </button>
    </form>
  )
}

export function NewValue({ known, reload }: Of) {
  const [kind, setKind] = useState<Kind>('variable')
  const [failure, setFailure] = useState<Failure | null>(null)
  const [isBusy, setBusy] = useState(false)
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault()
    const form = event.currentTarget as HTMLFormElement
    const name = fieldOf(form, 'name')
    const content = { name, kind, value: fieldOf(form, 'value') }
    const done = (): void => {
      form.reset()
      setKind('variable')
      reload()
    }
    setFailure(null)
    const stored = known.entries.find((entry) => entry.name === name)
    if (stored?.kind === kind) return askToReplace(content, known, done)
    if (stored !== undefined) return setFailure(otherKind(stored, kind))
    setBusy(true)
    try {
      await set(content, known.revision)
      notice.value = `Set the ${kind} ${name}`
      done()
    } catch (error) {
      setFailure(failureOf(error))
    } finally {
      setBusy(false)
    }
  }
  return (
    <Section title="New variable or secret">
      <form onSubmit={(event) => void submit(event)} autocomplete="off">
        <label class="field">
          <span class="label">Name: upper-case letters, digits and _</span>
          <input
            name="name"
            required
            pattern={CONFIGURATION_NAME.source}
            title="1 to 64 upper-case letters, digits and _, such as API_KEY"
            autocomplete="off"
            spellcheck={false}
          />
        </label>
        <label class="field">
          <span class="label">Type</span>
          <select
            name="kind"
            value={kind}
            aria-describedby="kind"
            onChange={(event) => setKind(event.currentTarget.value as Kind)}
          >
            <option value="variable">variable</option>
            <option value="secret">secret</option>
          </select>
        </label>
        <span id="kind" class="field wide hint">
          {kind === 'variable'
            ? 'Every Function can read a variable, and operators see its value.'
            : 'Only Actions that name a secret can read it. Its value is never shown again.'}
        </span>
        {kind === 'secret' ? (
          <SecretInput key={kind} label="Value" name="secret" />
        ) : (
          <VariableInput key={kind} label="Value" value="" />
        )}
        {failure !== null && <FailureNote failure={failure} />}
        <button type="submit" class="main" disabled={isBusy}>
          Set
        </button>
      </form>
    </Section>
  )
}

function otherKind(stored: EntryField, kind: Kind): Failure {
  return new Failure({
    code: 'PRODUCT_STATE_CONFLICT',
    message: `${stored.name} is a ${stored.kind}, and a name keeps its type.`,
    next: `Delete it, then set it as a ${kind}.`,
    requestId: null,
    violations: [],
  })
}

/** Reads the text of a field of a form. */
function fieldOf(form: HTMLFormElement, name: 'name' | 'value'): string {
  return (form.elements.namedItem(name) as HTMLInputElement | HTMLTextAreaElement).value
}

function VariableInput({ label, value }: { label: string; value: string }) {
  return (
    <label class="field wide">
      <span class="label">{label}</span>
      <textarea name="value" rows={4} spellcheck={false} defaultValue={value} />
    </label>
  )
}

/** A password field drops line ends in silence, so a text of several lines is not taken. */
function SecretInput({ label, name }: { label: string; name: string }) {
  const [isRejected, setRejected] = useState(false)
  const take = (event: Event, given: DataTransfer | null): void => {
    const text = (given?.getData('text') ?? '').replace(/\r?\n$/, '')
    const hasLines = /[\r\n]/.test(text)
    if (hasLines) event.preventDefault()
    setRejected(hasLines)
  }
  return (
    <>
      <label class="field">
        <span class="label">{label}</span>
        <input
          type="password"
          name="value"
          required
          autocomplete="off"
          onPaste={(event) => take(event, event.clipboardData)}
          onDrop={(event) => take(event, event.dataTransfer)}
        />
      </label>
      {isRejected && (
        <p class="failure" role="alert">
          This field holds one line. Set a secret of several lines on the command line:{' '}
          <code>svc config set {name === 'secret' ? 'NAME' : name} --secret &lt; FILE</code>
        </p>
      )}
    </>
  )
}
