// Tells the story: its lines, then a button a choice.

import { Story } from "inkjs";

import content from "./lighthouse.ink";

const story = new Story(content);
const page = document.getElementById("story");

const add = (name, text) => {
  const element = document.createElement(name);
  element.textContent = text;
  page.append(element);
  return element;
};

const tell = () => {
  for (const button of page.querySelectorAll("button")) button.remove();
  while (story.canContinue) add("p", story.Continue());
  for (const choice of story.currentChoices) {
    add("button", choice.text).addEventListener("click", () => {
      story.ChooseChoiceIndex(choice.index);
      tell();
    });
  }
};
tell();
