"""Twenty conversations; what must stand in a summary of each is between asterisks."""

from __future__ import annotations

import re
from typing import Final, NamedTuple


class Conversation(NamedTuple):
    """Turns as (speaker, text), and what must stand in their summary."""

    turns: list[tuple[str, str]]
    wanted: list[str]


_TEXTS: Final = """
user: Good morning! I hope the weekend was fine. Could you look into the slow checkout with me today?
agent: Sure, happy to help. I went through the traces first. The slow part is the tax lookup, which takes *1.8 seconds* at the median.
user: Oh, that is more than I thought. Do we know since when?
agent: It began with release *2.14*, when the cache in front of it was removed by accident.
user: I see. That explains a lot of what people told me last week, I must say.
agent: Yes. We decided to put the cache back and to *keep entries for 15 minutes*.
user: Sounds good to me. Who does it?
agent: *Maria* takes it, and it must be live before *Friday the 12th*.
---
user: Hello again, shall we go on where we stopped yesterday?
agent: Yes, let us. There were two candidates for the database, and both had friends in the room.
user: Right. I remember that it went back and forth for quite a while.
agent: In the end we agreed on *PostgreSQL 16*, because the team at *Norrland* runs it already.
user: And the other one, is that off the table for good?
agent: *MySQL was rejected* for its online schema changes. Nobody was sad about it.
user: Fine. What about money, did that come up at all?
agent: It did: the budget is *4,200 euros* a year, hosting included.
---
user: The alerts at night again, three times in a row. I am tired, as you can imagine.
agent: I am sorry to hear that. Let us see what we can find in the logs together.
user: Please do. I have got coffee now, so take your time.
agent: The alerts come from *node-7*, whose disk fills up because log rotation stopped.
user: How can that be? I thought this was set up years ago by somebody.
agent: The timer was disabled on *3 March* when the image was rebuilt. It was not noticed then.
user: So what do we do about it now, and later on?
agent: I fixed the timer; from now on *an alert fires at 70 %*. *Jonas* reviews it on Monday.
---
user: We should talk about how you answer me. It is nothing bad, do not worry.
agent: Of course, tell me what you would like to be different.
user: Well, it is a small thing, but it adds up over the day.
user: I prefer *answers in German*, and *never more than five sentences*.
agent: Understood. Should that hold for code comments as well, or only for chat?
user: No, comments must stay in *English*. My colleagues would complain otherwise.
agent: Noted. Is there anything else that would make your day easier?
user: Not really, thank you. And call me *Aleksander*, please.
---
user: So, the audit. I have the report here, it is a long one, and not always easy to read.
agent: Let us go through it step by step, then. What does the first page say?
user: It says a lot of words. The gist is that *tokens never expire* in the mobile app.
agent: That is a serious one. Do they say how they would rate it?
user: They rate it *critical*, with the number *SEC-1042*.
agent: Then it goes first. We will let tokens expire after *24 hours*.
user: Good. I will tell the others at lunch, they are waiting for something like that.
agent: And the fix is due on *30 June*, as the contract with *Halden Bank* demands.
---
user: Did you get a chance to read what the designers sent around?
agent: I did, this morning. There is a lot of nice work in it, I think.
user: There is. We have to choose, though, and that is always hard with them.
agent: We chose *variant B*, because the buttons reach a contrast of *4.8*.
user: And the font? People had opinions on that, to put it mildly.
agent: It will be *Inter*. The license allows it, as *Priya* from legal confirmed.
user: Great. Then we only need a date, and somebody who tells marketing.
agent: The rollout starts on *9 September* with *10 percent* of users.
---
user: I am back from the call with the customer. It was long, and the line was bad.
agent: Welcome back. How did it go, apart from the line?
user: Not too bad, all in all. They asked many things that are in the manual.
user: They must have the export by *1 October*, or they leave for *Quantix*.
agent: That is clear at least. In which format do they need it?
user: They want *Parquet files*, one for each day, in their own bucket.
agent: And what do they pay for it, if I may ask?
user: *18,000 dollars* once. *Helena* sends the contract.
---
user: Can you help me to understand why the build is red? I changed nothing, I swear.
agent: People always say that. Let me look at the last green one and compare.
user: Haha, I know. But this time it is true, or so I believe.
agent: The root cause is *setuptools 72*, which dropped a module that one test imports.
user: Ah, so it was not me after all. That is a relief.
agent: Right. We will *pin it below 72* until *issue #318* is closed.
user: Is there somebody who looks at that one, or does it just sit there?
agent: *Tobias* does, and he expects to be done within *two weeks*.
---
user: Let us plan the move of the office servers. It scares me a little, to be honest.
agent: That is natural. It gets easier when it is written down in small steps.
user: Then let us do that. Where do we begin, what do you think?
agent: First the backups. *Restic* copies everything to *Tromsø* on *14 May*.
user: And if something goes wrong there? Something always does.
agent: Then we stop: *nothing is switched off* before a restore has been tried.
user: Good, I can sleep with that. How long will it all take?
agent: The window is *six hours*, and *Ingrid* has the keys.
---
user: I read the paper that you recommended. It is dense, but I liked the pictures.
agent: The pictures are what I like best, too. What did you make of it?
user: I think that it is over my head in parts, but the main idea came across.
agent: The point for us is that *reranking* gains *7 points* on long documents.
user: That is more than I expected from such a small change.
agent: Yes. We decided to try it with *MiniLM* and *50 candidates*.
user: On which data? We have a bit of everything lying around.
agent: On the *support tickets of 2025*, which *Omar* has cleaned.
---
user: Quick question, and then I leave you alone. It is about the invoices.
agent: No problem at all, ask away. I have time until noon.
user: Some of them are wrong, it seems. At least that is what accounting says.
agent: They are right: *rounding* is done per line, not per invoice, since *version 5.3*.
user: Does that cost anybody anything? Or is it just ugly?
agent: It made a difference of *312 euros* in *April*. We will credit it.
user: Who tells the customers? It should not be a robot, I think.
agent: *Beatrice* calls them, and we agreed to *round per invoice* from now on.
---
user: The new person starts on Monday, and nothing is ready. As always, I might add.
agent: Then let us make a list, and it will be done by Friday.
user: You are an optimist. But all right, let us make one.
agent: Her name is *Yuki Tanaka*, and she joins the *billing team*.
user: Which machine does she get? We had a few of those in the cupboard.
agent: She gets a *ThinkPad T14*, which must be encrypted first.
user: And accounts, who does those this time?
agent: *Samir* makes them; access to production comes after *30 days*.
---
user: I tried the app on my old phone. It is like wading through mud, honestly.
agent: That does not sound nice. Which screen was the worst of them?
user: The list with all the pictures. I almost threw the phone away.
agent: The list decodes *every image twice*, which takes *900 ms* on old devices.
user: Twice! Why would anybody do such a thing?
agent: It came with the library *Glidex*. We will replace it by *Coil*.
user: And before that, is there anything that can be done quickly?
agent: Yes: thumbnails of at most *200 pixels*. *Nadia* ships them on *Tuesday*.
---
user: About the conference: I would like to go, but I am not sure that I can.
agent: It would be a pity to miss it. What speaks against it?
user: Mostly the usual things. Time, money, and a cat that needs somebody.
agent: The talk was *accepted*, so the ticket costs *nothing*.
user: Really? I must have missed that message. That changes things.
agent: It is in *Rotterdam* on *21 November*, and you speak for *25 minutes*.
user: Then I will go. Somebody will have to feed the cat.
agent: *Lucas* said that he will do it. Slides are due on *7 November*.
---
user: We got a letter. A real one, on paper, can you believe it?
agent: That does not happen often. Who writes letters in these times?
user: Lawyers, of course. It is about the name of the product, as far as I can tell.
agent: They say that *Lumio* is a trademark of *Lumio Oy* since *2019*.
user: That is not what we found when we looked it up, or is it?
agent: We did not look in *Finland*. We decided to *rename it to Brightly*.
user: All of it? The site, the app, the stickers, the mugs?
agent: All of it, by *31 December*. *Farah* coordinates.
---
user: Have you seen how many tests are skipped? I counted them out of boredom.
agent: I have a feeling that I will not like the number. Go ahead.
user: You will not. I am not even sure that I counted all of them.
agent: I counted too: *214 tests* are skipped, most of them since the move to *Windows*.
user: That is a lot. What do we do, delete them?
agent: No. We agreed that each must have *an owner and a date*.
user: That will be a long afternoon for somebody, I am afraid.
agent: *Pavel* begins with *tests/network*; ten a week are enough.
---
user: My idea for the search page. It is only an idea, so be kind.
agent: I will be. Ideas are welcome, that is what we are here for.
user: Thanks. It came to me in the shower, like all of them do.
user: We should *show results while people type*, after *three letters*.
agent: I like that. Can the server take it, do you think?
user: I measured: a query takes *12 ms*, so it must be fine up to *80 users*.
agent: Then we use it for *beta customers* first, and look again.
user: Yes. *Greta* builds it, I only had the shower.
---
user: There was a mail from the data center. Something with power, I did not read all of it.
agent: I did. It is long, but only two lines of it matter for us.
user: Tell me those two lines, then, and I will be happy.
agent: Power is cut on *2 August* from *01:00 to 03:00* in hall *C4*.
user: That is where our old machines are, is it not?
agent: It is. *Kestrel* and *Osprey* will be shut down before.
user: By whom? I am on a beach by then, with no laptop.
agent: By *Dimitri*. He must have the passphrase *from the safe*.
---
user: I would like to change how we review. Not everything, just a part of it.
agent: Tell me. I have wished for a change there for a long time, too.
user: It takes too long, and then it is too late, and then nobody dares.
user: From now on *one approval* is enough for changes under *200 lines*.
agent: And for the rest of them? There are bigger ones now and then.
user: They need *two*, of whom one must be from *platform*.
agent: That is fair. When do we begin with it?
user: On *Monday*, and *Chiara* writes it into CONTRIBUTING.md.
---
user: Last thing for today, I promise. My head is empty anyway.
agent: Mine too, in a manner of speaking. What is it?
user: The license of that library we talked about. Somebody asked again.
agent: *Vellum 3* is under *AGPL*, so we must not link it into the product.
user: Not even the small part of it that we need so badly?
agent: Not even that. We use *Pergament 1.9* instead, which is *MIT*.
user: Does it do the same? I would hate to find out later.
agent: All but *right-to-left text*, which *Noor* adds until *May*.
"""


def conversations() -> list[Conversation]:
    """Return the conversations."""
    out = []
    for block in _TEXTS.strip().split("\n---\n"):
        pairs = [line.split(": ", 1) for line in block.splitlines()]
        wanted = re.findall(r"\*([^*]+)\*", block)
        out.append(Conversation([(who, text.replace("*", "")) for who, text in pairs], wanted))
    return out
