/** The dialog that asks before an act: what it destroys, and the command that would do the same. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { type Failure, failureOf } from '../requests.ts'
import { notice, type Question, question } from '../state.ts'
import { FailureNote } from './page.tsx'
import { Block, Shown } from './shown.tsx'

export function QuestionDialog() {
  const asked = question.value
  // Each question has a dialog of its own, also where it follows another one at once.
  return asked === null ? null : <Asked key={asked} asked={asked} />
}

function Asked({ asked }: { asked: Question }) {
  const dialog = useRef<HTMLDialogElement>(null)
  const [failure, setFailure] = useState<Failure | null>(null)
  const [isBusy, setBusy] = useState(false)
  /** Set at once, since a second click may come before the button is disabled. */
  const isActing = useRef(false)
  useEffect(() => {
    const opener = document.activeElement
    dialog.current?.showModal()
    return () => {
      if (opener instanceof HTMLElement) opener.focus()
    }
  }, [])
  const act = async (): Promise<void> => {
    if (isActing.current) return
    isActing.current = true
    setBusy(true)
    setFailure(null)
    try {
      await asked.act()
      if (question.value === asked) question.value = null
      if (asked.isShownByPage !== true) notice.value = `Done: ${asked.title.replace(/\?$/, '')}`
      asked.done()
    } catch (error) {
      setFailure(failureOf(error))
      setBusy(false)
      isActing.current = false
    }
  }
  const close = (): void => {
    if (question.value === asked) question.value = null
  }
  return (
    <dialog ref={dialog} aria-labelledby="question" onClose={close}>
      <h2 id="question">
        <Shown text={asked.title} />
      </h2>
      {asked.effects.map((effect) => (
        <p key={effect}>
          <Shown text={effect} max={600} />
        </p>
      ))}
      <p class="quiet">The same on the command line:</p>
      <Block text={asked.command} label="Command" />
      {failure !== null && <FailureNote failure={failure} />}
      <div class="buttons">
        <button type="button" onClick={close}>
          Cancel
        </button>
        <button type="button" class="danger" disabled={isBusy} onClick={() => void act()}>
          {asked.label}
        </button>
      </div>
    </dialog>
  )
}
