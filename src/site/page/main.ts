/** The script of every page: the switch of colours, buttons that copy code, search, the tape. */
import { element } from './elements.ts'
import { addSearch } from './search.ts'
import { addTape } from './tape.ts'
import { applyTheme, shownTheme, storeTheme } from './themes.ts'

const COPIED_MS = 2_000

function addThemeSwitch(tools: HTMLElement): void {
  const button = element('button', { type: 'button', class: 'theme' })
  const show = (): void => {
    button.textContent = shownTheme() === 'dark' ? 'Light' : 'Dark'
  }
  button.addEventListener('click', () => {
    const theme = shownTheme() === 'dark' ? 'light' : 'dark'
    storeTheme(theme)
    applyTheme(theme)
    show()
  })
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', show)
  show()
  tools.append(button)
}

function addCopyButtons(): void {
  for (const block of document.querySelectorAll<HTMLElement>('.code')) {
    const button = element('button', { type: 'button', class: 'copy' }, 'Copy')
    button.addEventListener('click', () => {
      const text = block.querySelector('code')?.textContent ?? ''
      const say = (word: string): void => {
        button.textContent = word
        setTimeout(() => {
          button.textContent = 'Copy'
        }, COPIED_MS)
      }
      // A page of a plain address has no clipboard.
      const copied = navigator.clipboard?.writeText(text) ?? Promise.reject(new Error('none'))
      copied.then(
        () => say('Copied'),
        () => say('Not allowed'),
      )
    })
    block.append(button)
  }
}

const tools = document.getElementById('tools')
if (tools !== null) {
  addSearch(tools)
  addThemeSwitch(tools)
}
addCopyButtons()
addTape()
