/** Plays the recording of the first steps below the heading that has them. */
import { element } from './elements.ts'
import { loadScript } from './scripts.ts'

declare global {
  /** The recording in the format asciicast 2, which tape.js sets. */
  var svcTape: string | undefined
}

const HEADING = 'the-first-ten-minutes-on-a-server'

interface Event {
  readonly atMillis: number
  readonly text: string
}

function readTape(tape: string): Event[] {
  const [, ...lines] = tape.trim().split('\n')
  return lines.map((line) => {
    const [seconds, , text] = JSON.parse(line) as [number, string, string]
    return { atMillis: seconds * 1_000, text: text.replaceAll('\r', '') }
  })
}

/** Writes events to the screen at their times. */
class Player {
  readonly #screen: HTMLElement
  readonly #events: readonly Event[]
  readonly #onEnd: () => void
  #next = 0
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(screen: HTMLElement, events: readonly Event[], onEnd: () => void) {
    this.#screen = screen
    this.#events = events
    this.#onEnd = onEnd
  }

  play(): void {
    if (this.#next >= this.#events.length) this.#rewind()
    this.#step()
  }

  pause(): void {
    clearTimeout(this.#timer)
  }

  /** Shows everything at once. */
  finish(): void {
    this.pause()
    while (this.#next < this.#events.length) this.#write()
    this.#onEnd()
  }

  #rewind(): void {
    this.#next = 0
    this.#screen.textContent = ''
  }

  #step(): void {
    const event = this.#events[this.#next]
    if (event === undefined) {
      this.#onEnd()
      return
    }
    const before = this.#events[this.#next - 1]?.atMillis ?? 0
    this.#timer = setTimeout(() => {
      this.#write()
      this.#step()
    }, event.atMillis - before)
  }

  #write(): void {
    this.#screen.append(this.#events[this.#next]!.text)
    this.#next += 1
    this.#screen.scrollTop = this.#screen.scrollHeight
  }
}

export function addTape(): void {
  const heading = document.getElementById(HEADING)
  if (heading === null) return
  const screen = element('pre', { tabindex: '0', 'aria-label': 'The recorded terminal' })
  const button = element('button', { type: 'button' }, 'Play')
  const all = element('button', { type: 'button' }, 'Show all')
  const caption = element('figcaption', {}, 'These commands and what they print, recorded.')
  const controls = element('div', { class: 'controls' }, button, all, caption)
  heading.after(element('figure', { class: 'tape' }, controls, screen))
  screen.hidden = true
  let player: Promise<Player> | null = null
  let plays = false
  const show = (playing: boolean): void => {
    plays = playing
    button.textContent = playing ? 'Pause' : 'Play'
  }
  const open = (): Promise<Player> => {
    screen.hidden = false
    player ??= loadScript('tape.js').then(
      () => new Player(screen, readTape(globalThis.svcTape ?? ''), () => show(false)),
    )
    return player
  }
  const report = (): void => {
    player = null
    show(false)
    caption.textContent = 'The recording was not loaded. Try it again.'
  }
  button.addEventListener('click', () => {
    show(!plays)
    const wanted = plays
    open().then((it) => (wanted ? it.play() : it.pause()), report)
  })
  all.addEventListener('click', () => void open().then((it) => it.finish(), report))
}
