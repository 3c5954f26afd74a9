/** A secret that the server shows once, for the person who asked for it. */
import { useState } from 'preact/hooks'
import { Block } from './shown.tsx'

/** Kept in the state of the component alone: another page or a reload forgets it. */
export function OneTimeSecret({ text, label }: { text: string; label: string }) {
  const [isCopied, setCopied] = useState<boolean | null>(null)
  const copy = (): void => {
    navigator.clipboard.writeText(text).then(
      () => setCopied(true),
      () => setCopied(false),
    )
  }
  return (
    <>
      <Block text={text} label={label} />
      <p class="actions">
        <button type="button" onClick={copy}>
          Copy
        </button>
        <span role="status">
          {isCopied === true && 'Copied.'}
          {isCopied === false && 'The browser did not copy it: select the text instead.'}
        </span>
      </p>
    </>
  )
}
