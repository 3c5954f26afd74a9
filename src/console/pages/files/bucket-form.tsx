/** The bounds of a bucket as a form: a new bucket, or other bounds of one. */
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { parseBytes } from '../../../client/sizes.ts'
import { bytesText } from '../../formats.ts'
import { FailureNote, Section } from '../../parts/page.tsx'
import { call, Failure, failureOf, nowMicros } from '../../requests.ts'
import { environmentId, notice } from '../../state.ts'

export interface Bounds {
  readonly quotaBytes: string | null
  readonly maximumObjectBytes: string | null
}

export function boundText(bytes: string | null): string {
  return bytes === null ? 'no bound' : bytesText(bytes)
}

/** Returns the bounds of a form. Throws a Failure for what is not a size. */
export function boundsOf(form: FormData): Bounds {
  const at = (name: string, label: string): string | null => {
    const text = String(form.get(name) ?? '').replaceAll(' ', '')
    if (text === '') return null
    const bytes = parseBytes(text)
    if (bytes !== null) return String(bytes)
    throw new Failure({
      code: 'ARGUMENTS_INVALID',
      message: `${label} is not a size.`,
      next: 'Write a number of bytes or a size such as 500MiB or 2GiB, or leave the field empty.',
      requestId: null,
      violations: [],
    })
  }
  return {
    quotaBytes: at('quota', 'The quota'),
    maximumObjectBytes: at('objectMax', 'The largest object'),
  }
}

export function BoundFields({ bounds }: { bounds: Bounds }) {
  return (
    <>
      <SizeField name="quota" label="Quota, such as 10GiB" value={bounds.quotaBytes} />
      <SizeField
        name="objectMax"
        label="Largest object, such as 100MiB"
        value={bounds.maximumObjectBytes}
      />
    </>
  )
}

function SizeField({ name, label, value }: { name: string; label: string; value: string | null }) {
  return (
    <label class="field">
      <span class="label">{label}</span>
      <input
        name={name}
        defaultValue={value ?? ''}
        placeholder="no bound"
        autocomplete="off"
        spellcheck={false}
      />
    </label>
  )
}

/** A form whose submission may fail. */
export function ActForm({
  children,
  act,
}: {
  children: ComponentChildren
  act: (form: FormData, element: HTMLFormElement) => Promise<unknown> | unknown
}) {
  const [failure, setFailure] = useState<Failure | null>(null)
  const [isBusy, setBusy] = useState(false)
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault()
    if (isBusy) return
    const element = event.currentTarget as HTMLFormElement
    setBusy(true)
    setFailure(null)
    try {
      await act(new FormData(element), element)
    } catch (error) {
      setFailure(failureOf(error))
    } finally {
      setBusy(false)
    }
  }
  return (
    <>
      <form onSubmit={(event) => void submit(event)} aria-busy={isBusy}>
        {children}
      </form>
      {isBusy && (
        <p class="quiet" role="status">
          Sending …
        </p>
      )}
      {failure !== null && <FailureNote failure={failure} />}
    </>
  )
}

export function NewBucket({ done }: { done: () => void }) {
  const create = async (form: FormData, element: HTMLFormElement): Promise<void> => {
    const name = String(form.get('name')).trim()
    const configuration = { name, ...boundsOf(form) }
    const body = { configuration, changedAtMicros: nowMicros() }
    await call('createBucket', environmentId.value, { body })
    notice.value = `Created the bucket ${name}`
    element.reset()
    done()
  }
  return (
    <Section title="New bucket">
      <ActForm act={create}>
        <label class="field">
          <span class="label">Name, which is never used again</span>
          <input name="name" required autocomplete="off" spellcheck={false} />
        </label>
        <BoundFields bounds={{ quotaBytes: null, maximumObjectBytes: null }} />
        <button type="submit" class="main">
          Create the bucket
        </button>
      </ActForm>
    </Section>
  )
}
