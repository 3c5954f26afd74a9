/** A button that copies a text, such as a key that is shown once. */
import { notice } from '../state.ts'

export function CopyButton({ text, label }: { text: string; label: string }) {
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text)
      notice.value = 'Copied.'
    } catch {
      notice.value = 'The browser does not allow it. Select the text above and copy it.'
    }
  }
  return (
    <button type="button" class="main" onClick={() => void copy()}>
      {label}
    </button>
  )
}
